/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/outcome.h"

#include "pipeline/publish/manifest.h"
#include "pipeline/publish/publish.h"
#include "service/base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static void print_file(struct pb_json *json, const char *directory,
                       const struct pb_manifest_file *file)
{
    char text[PATH_MAX + sizeof file->file];
    pb_json_object(json, NULL);
    pb_json_string(json, "type", file->type);
    if (file->name[0] != '\0')
        pb_json_string(json, "name", file->name);
    (void)snprintf(text, sizeof text, "%s/%s", directory, file->file);
    pb_json_string(json, "path", text);
    pb_json_int(json, "bytes", (int64_t)file->bytes);
    if (file->checksum[0] != '\0')
        pb_json_string(json, "checksum", file->checksum);
    else
        pb_json_null(json, "checksum");
    pb_json_string(json, "media_type", file->media_type);
    pb_json_end(json);
}

/* Fills in the report like a worker. If out of memory, the job is successful anyway. */
static void describe(struct pb_job *job, const char *directory, const struct pb_manifest *manifest)
{
    struct pb_json *json = pb_json_create(false);
    size_t bytes = 0;
    pb_json_array(json, NULL);
    for (size_t i = 0; i < manifest->n_files; i++)
        print_file(json, directory, &manifest->file[i]);
    pb_json_end(json);
    (void)pb_job_set(&job->products, pb_json_text(json, &bytes));
    (void)pb_job_set(&job->directory, directory);
    pb_json_destroy(json);
}

bool pb_outcome_is_published(struct pb_job *job, const char *products, const char *path)
{
    char directory[PATH_MAX], words[128];
    struct pb_manifest manifest = {0};
    if (job->pipeline[0] == '\0')
        return false;
    /* also restores products that an interrupted exchange had moved aside */
    int rc = pb_publish_fence(products, job->id, (uint64_t)job->epoch);
    /* The next run does not begin before it has fenced the earlier ones. Without one, only a
     * run that has its permit already can publish. */
    if (rc < 0)
        pb_log(PB_LOG_ERROR, "job %s: cannot keep its earlier runs from publishing in %s: %s",
               job->id, products, strerror_r(-rc, words, sizeof words));
    const struct pb_manifest_job known = {job->id, job->scene, job->pipeline, path};
    rc = pb_manifest_find(products, &known, directory, &manifest);
    if (rc != 0 && rc != -ENOENT)
        pb_log(PB_LOG_WARNING, "job %s: cannot look for its products in %s: %s", job->id, products,
               strerror_r(-rc, words, sizeof words));
    if (rc != 0)
        return false;
    pb_log(PB_LOG_WARNING, "job %s: its products are in place (%s), so it is done%s%s", job->id,
           directory, job->error.code[0] ? ", in spite of: " : "", job->error.message);
    describe(job, directory, &manifest);
    memset(&job->error, 0, sizeof job->error);
    pb_manifest_fini(&manifest);
    return true;
}
