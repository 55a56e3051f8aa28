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

#define SUM_DIGITS 64

/* The manifest of the products in a directory, if they are that job's and complete. */
static int read_products(const char *directory, const char *job, struct pb_manifest *out)
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

void pb_duplicates_remember(struct pb_job_store *store, const struct pb_job *job)
{
    struct pb_manifest manifest = {0};
    struct pb_err err = {0};
    if (job->directory == NULL)
        return;
    int rc = read_products(job->directory, job->id, &manifest);
    if (rc == 0 && !manifest.has_files && manifest.input.sha256[0] != '\0') {
        const struct pb_content content = {job->pipeline, (int64_t)manifest.input.bytes,
                                           manifest.input.sha256};
        struct pb_content_done done = {.time_ms = job->finished_ms};
        (void)snprintf(done.job, sizeof done.job, "%s", job->id);
        (void)snprintf(done.directory, sizeof done.directory, "%s", job->directory);
        rc = pb_contents_add(store, &content, &done, &err);
    }
    pb_manifest_fini(&manifest);
    if (rc != 0)
        pb_log(PB_LOG_WARNING, "job %s: its content is not remembered (service.duplicates): %s",
               job->id, err.code != PB_OK ? err.msg : strerror(-rc));
}

/* The job's input as it lies there; false: it is no file. */
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
    pb_job_fail(job, PB_E_INPUT_DUPLICATE,
                "job %s did the same content (%lld bytes, SHA-256 %.12s...) through %s at %s; the "
                "products are in %.700s",
                done->job, (long long)content->bytes, content->sha256, job->pipeline, when,
                done->directory);
}

enum pb_duplicates_verdict pb_duplicates_judge(struct pb_job_store *store, struct pb_job *job)
{
    char sum[SUM_DIGITS + 1];
    struct pb_content content = {.pipeline = job->pipeline, .sha256 = sum};
    struct pb_content_done done;
    struct pb_manifest manifest = {0};
    struct pb_err err = {0};
    (void)snprintf(sum, sizeof sum, "%.64s", job->error.message);
    if (!find_bytes(job, &content.bytes))
        return PB_DUPLICATES_FALSE;
    int rc = pb_contents_find(store, &content, &err, &done);
    if (rc <= 0)
        return rc == 0 ? PB_DUPLICATES_FALSE : PB_DUPLICATES_GONE;
    rc = read_products(done.directory, done.job, &manifest);
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

int pb_duplicates_compare(struct pb_input_sum *sum, const char *known, struct pb_err *err)
{
    char hex[SUM_DIGITS + 1];
    if (known == NULL)
        return 0;
    int rc = pb_input_sum_get(sum, err, hex);
    if (rc != 0 || !pb_input_sum_is_of_one(sum))
        return rc;
    for (; strnlen(known, SUM_DIGITS) == SUM_DIGITS; known += SUM_DIGITS)
        if (strncmp(known, hex, SUM_DIGITS) == 0)
            return pb_fail(err, PB_E_INPUT_DUPLICATE, "%s", hex);
    return 0;
}
