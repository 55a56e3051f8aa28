/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/duplicates.h"

#include "config/base/clock.h"
#include "pipeline/publish/manifest.h"
#include "pipeline/scene/scene_inputs.h"
#include "pipeline/scene/manifest_match.h"
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

/* Scene of an archive of several that the job computes; "" for a whole input. */
static const char *scene_of(const struct pb_job *job)
{
    return job->archive[0] != '\0' ? job->scene : "";
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
        const struct pb_content content = {job->pipeline, scene_of(job), (int64_t)input->bytes,
                                           input->checksum[k]};
        if (content.checksum[0] != '\0')
            rc = pb_contents_add(store, &content, &done, err);
    }
    return rc;
}

void pb_duplicates_remember(struct pb_job_store *store, struct pb_job *job, bool contents)
{
    struct pb_manifest manifest = {0};
    struct pb_err err = {0};
    if (job->directory == NULL)
        return;
    int rc = pb_duplicates_products(job->directory, job->id, &manifest);
    if (rc == 0)
        rc = pb_scene_manifest_complete(&job->manifest, &manifest.inputs);
    if (rc == 0 && contents && pb_scene_manifest_is_image(&manifest.inputs))
        rc = remember(store, job, &manifest.input, &err);
    pb_manifest_fini(&manifest);
    if (rc != 0 && contents)
        pb_log(PB_LOG_WARNING, "job %s: its content is not remembered (service.duplicates): %s",
               job->id, err.code != PB_OK ? err.msg : strerror(-rc));
}

/* Finds the size of the job's input at its present place; false if it is not a file. */
static bool find_bytes(const struct pb_job *job, int64_t *out)
{
    struct stat st;
    if (job->manifest.input == NULL || stat(job->manifest.input, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *out = (int64_t)st.st_size;
    return true;
}

char *pb_duplicates_known(struct pb_job_store *store, const struct pb_job *job, int64_t since_ms)
{
    struct pb_content content = {.pipeline = job->pipeline, .scene = scene_of(job)};
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
    struct pb_content content = {
        .pipeline = job->pipeline, .scene = scene_of(job), .checksum = sum};
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

/* --- in the worker --------------------------------------------------------------------------- */

static int no_memory(struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the comparison with earlier inputs");
}

int pb_duplicates_compare_files(const struct pb_duplicates_input *input,
                                const struct pb_scene_manifest *products, struct pb_err *err)
{
    char checksum[PB_CHECKSUM_TEXT_BYTES] = "";
    struct pb_manifest_comparison result;
    if (pb_scene_manifest_compare(products, input->files, &result) != 0)
        return no_memory(err);
    if (result.at_best != PB_MANIFEST_SAME)
        return 0;
    int rc = pb_input_sum_get(input->sum, result.kind, err, checksum);
    if (rc == 0 && (pb_scene_inputs_know(input->sum, result.kind, input->files) != 0 ||
                    pb_scene_manifest_compare(products, input->files, &result) != 0))
        rc = no_memory(err);
    return rc == 0 && result.relation == PB_MANIFEST_SAME
               ? pb_fail(err, PB_E_INPUT_DUPLICATE, "%s", checksum)
               : rc;
}

/* Makes the manifest of one image of the size of the input, and returns its only file; NULL if out
 * of memory. */
static struct pb_manifest_entry *make_image(struct pb_scene_manifest *out, int64_t bytes)
{
    const struct pb_manifest_entry image = {.path = (char *)"image", .bytes = bytes};
    const struct pb_member member = {.role = PB_ROLE_IMAGE};
    return pb_scene_manifest_root(out, "/") == 0 && pb_scene_manifest_add(out, &image) == 0 &&
                   pb_scene_manifest_assign(out, &member) == 0
               ? &out->entry[0]
               : NULL;
}

/* Copies the next checksum of a list with a space after each entry; NULL at its end. */
static const char *next_checksum(const char *list, char out[PB_CHECKSUM_TEXT_BYTES])
{
    const size_t n = strcspn(list, " ");
    (void)snprintf(out, PB_CHECKSUM_TEXT_BYTES, "%.*s", (int)n, list);
    return list[n] == ' ' ? list + n + 1 : NULL;
}

int pb_duplicates_compare(const struct pb_duplicates_input *input, const char *known,
                          struct pb_err *err)
{
    char checksum[PB_CHECKSUM_TEXT_BYTES];
    struct pb_scene_manifest products = {.n_roots = 0};
    enum pb_checksum kind;
    const char *digits;
    if (known == NULL || pb_input_sum_is_growing(input->sum) ||
        !pb_scene_manifest_is_image(input->files))
        return 0;
    struct pb_manifest_entry *image = make_image(&products, input->files->entry[0].bytes);
    int rc = image != NULL ? 0 : no_memory(err);
    for (const char *at = known; (at = next_checksum(at, checksum)) != NULL;)
        if (pb_checksum_parse(checksum, &kind, &digits) == 0)
            pb_input_sum_want(input->sum, kind);
    for (const char *at = known; rc == 0 && (at = next_checksum(at, checksum)) != NULL;) {
        image->checksum = checksum;
        rc = pb_duplicates_compare_files(input, &products, err);
        image->checksum = NULL;
    }
    pb_scene_manifest_fini(&products);
    return rc;
}
