/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/duplicates.h"

#include "config/base/clock.h"
#include "pipeline/publish/manifest.h"
#include "pipeline/raster/input_sum.h"
#include "service/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int pb_duplicates_products(const char *directory, const char *job, struct pb_manifest *out)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : pb_manifest_read(fd, out);
    if (rc == 0 && strcmp(out->job, job) != 0)
        rc = -ESTALE;
    if (rc == 0)
        rc = pb_manifest_check(fd, out);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

/* Stores each known checksum of the input. */
static int remember(struct pb_job_store *store, const struct pb_job *job,
                    const struct pb_input_id *input, struct pb_err *err)
{
    struct pb_content_done done = {.time_ms = job->finished_ms};
    int rc = 0;
    (void)snprintf(done.job, sizeof done.job, "%s", job->id);
    (void)snprintf(done.directory, sizeof done.directory, "%s", job->directory);
    for (int k = 0; k < PB_CHECKSUM_KINDS && rc == 0; k++) {
        const struct pb_content content = {job->pipeline, (int64_t)input->bytes,
                                           input->checksum[k]};
        if (content.checksum[0] != '\0')
            rc = pb_contents_add(store, &content, &done, err);
    }
    return rc;
}

void pb_duplicates_remember(struct pb_job_store *store, const struct pb_job *job)
{
    struct pb_manifest manifest = {0};
    struct pb_err err = {0};
    if (job->directory == NULL)
        return;
    int rc = pb_duplicates_products(job->directory, job->id, &manifest);
    if (rc == 0 && !manifest.has_files)
        rc = remember(store, job, &manifest.input, &err);
    pb_manifest_fini(&manifest);
    if (rc != 0)
        pb_log(PB_LOG_WARNING, "job %s: its content is not remembered (service.duplicates): %s",
               job->id, err.code != PB_OK ? err.msg : strerror(-rc));
}

/* Finds the size of the job's input at its present place; false if it is not a file. */
static bool find_bytes(const struct pb_job *job, int64_t *out)
{
    struct stat st;
    if (job->input == NULL || stat(job->input, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *out = (int64_t)st.st_size;
    return true;
}

char *pb_duplicates_known(struct pb_job_store *store, const struct pb_job *job, int64_t since_ms)
{
    struct pb_content content = {.pipeline = job->pipeline};
    struct pb_err err = {0};
    char *known = NULL;
    if (job->anyway || !find_bytes(job, &content.bytes))
        return NULL;
    if (pb_contents_like(store, &content, since_ms, &err, &known) != 0)
        pb_log(PB_LOG_WARNING, "job %s: it is not compared with earlier inputs: %s", job->id,
               err.msg);
    return known;
}

static void explain(struct pb_job *job, const struct pb_content *content,
                    const struct pb_content_done *done)
{
    char when[PB_CLOCK_TEXT_BYTES];
    pb_clock_text(done->time_ms, when);
    pb_job_fail(
        job, PB_E_INPUT_DUPLICATE,
        "job %s did the same content (%lld bytes, %.19s...) through %s at %s; the products are "
        "in %.700s",
        done->job, (long long)content->bytes, content->checksum, job->pipeline, when,
        done->directory);
}

enum pb_duplicates_verdict pb_duplicates_judge(struct pb_job_store *store, struct pb_job *job)
{
    char sum[PB_CHECKSUM_TEXT_BYTES];
    struct pb_content content = {.pipeline = job->pipeline, .checksum = sum};
    struct pb_content_done done;
    struct pb_manifest manifest = {0};
    struct pb_err err = {0};
    (void)snprintf(sum, sizeof sum, "%.*s", PB_CHECKSUM_TEXT_BYTES - 1, job->error.message);
    if (!find_bytes(job, &content.bytes))
        return PB_DUPLICATES_FALSE;
    int rc = pb_contents_find(store, &content, &err, &done);
    if (rc <= 0)
        return rc == 0 ? PB_DUPLICATES_FALSE : PB_DUPLICATES_GONE;
    rc = pb_duplicates_products(done.directory, done.job, &manifest);
    pb_manifest_fini(&manifest);
    if (rc == 0) {
        explain(job, &content, &done);
        return PB_DUPLICATES_SAME;
    }
    pb_log(PB_LOG_NOTICE,
           "job %s: job %s did the same content, but its products are not in %s any more, so it is "
           "computed",
           job->id, done.job, done.directory);
    (void)pb_contents_forget(store, &content, &err);
    return PB_DUPLICATES_GONE;
}

/* Returns true if the checksum is in the list, which has a space after each entry. */
static bool is_known(const char *known, const char *checksum)
{
    const size_t n = strlen(checksum);
    for (const char *at = known; (at = strstr(at, checksum)) != NULL; at += n)
        if ((at == known || at[-1] == ' ') && at[n] == ' ')
            return true;
    return false;
}

static bool has_kind(const char *known, enum pb_checksum kind)
{
    char word[32];
    (void)snprintf(word, sizeof word, "%s:", pb_checksum_name(kind));
    return strstr(known, word) != NULL;
}

int pb_duplicates_compare(struct pb_input_sum *sum, const char *known, struct pb_err *err)
{
    return known != NULL && pb_input_sum_is_of_one(sum) ? pb_duplicates_find(sum, known, err) : 0;
}

int pb_duplicates_find(struct pb_input_sum *sum, const char *known, struct pb_err *err)
{
    char checksum[PB_CHECKSUM_TEXT_BYTES];
    int rc = 0;
    for (int k = 0; k < PB_CHECKSUM_KINDS; k++)
        if (has_kind(known, (enum pb_checksum)k))
            pb_input_sum_want(sum, (enum pb_checksum)k);
    for (int k = 0; k < PB_CHECKSUM_KINDS && rc == 0; k++) {
        if (!has_kind(known, (enum pb_checksum)k))
            continue;
        rc = pb_input_sum_get(sum, (enum pb_checksum)k, err, checksum);
        if (rc == 0 && is_known(known, checksum))
            rc = pb_fail(err, PB_E_INPUT_DUPLICATE, "%s", checksum);
    }
    return rc;
}
