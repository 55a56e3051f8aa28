/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/earlier.h"

#include "config/base/base_name.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "service/inbox/inbox.h"
#include "service/jobs/service_time.h"
#include "service/jobs/set_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the files of a set");
}

/* Describes the job that the set would become. */
static int describe(struct pb_intake *intake, const struct pb_inbox *inbox,
                    const struct pb_assembled *set, struct pb_job *job)
{
    char directory[PB_FILES_PATH_BYTES];
    struct pb_companion_rule none;
    const char *name = pb_assembled_entry(set, 0)->path;
    size_t n = (size_t)(pb_base_name(name) - name);
    pb_job_init(job);
    pb_intake_describe_set(job, set->name, set->pipeline);
    (void)snprintf(directory, sizeof directory, "%s%s%.*s", inbox->path, n ? "/" : "",
                   n ? (int)(n - 1) : 0, name);
    return pb_intake_describe_place(intake, job, directory, &none);
}

/* Manifests of the parts of a set in their JSON form. They are parsed after the list, because the
 * store is locked during it. */
struct texts {
    char **text;
    size_t n;
};

static int add_text(void *user, const struct pb_set_part *part)
{
    struct texts *texts = user;
    if (part->manifest == NULL)
        return 0;
    char **more = realloc(texts->text, (texts->n + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    texts->text = more;
    more[texts->n] = strdup(part->manifest);
    if (more[texts->n] == NULL)
        return -ENOMEM;
    texts->n++;
    return 0;
}

/* Adds the part's files by their names at delivery; the job checks whether they still exist. */
static int add_names(struct pb_scene_earlier *out, const char *text)
{
    struct pb_scene_manifest manifest = {.n_roots = 0};
    int rc = pb_scene_manifest_parse(text, &manifest);
    if (rc != 0)
        return rc == -ENOMEM ? rc : 0;
    char **more = realloc(out->name, (out->n + manifest.n_entries + 1) * sizeof *more);
    rc = more != NULL ? 0 : -ENOMEM;
    if (more != NULL)
        out->name = more;
    for (size_t i = 0; rc == 0 && i < manifest.n_entries; i++) {
        char *copy = strdup(pb_base_name(manifest.entry[i].path));
        if (copy != NULL)
            out->name[out->n++] = copy;
        else
            rc = -ENOMEM;
    }
    pb_scene_manifest_fini(&manifest);
    return rc;
}

static int list_names(struct pb_intake *intake, const char *set_id, struct pb_err *err,
                      struct pb_scene_earlier *out)
{
    struct texts texts = {NULL, 0};
    int rc = pb_set_parts_list(intake->store, set_id, add_text, &texts, err);
    for (size_t i = 0; i < texts.n; i++) {
        rc = rc ? rc : add_names(out, texts.text[i]);
        free(texts.text[i]);
    }
    free(texts.text);
    return rc == -ENOMEM ? no_memory(err) : rc;
}

static int find(struct pb_intake *intake, const struct pb_job *job, int64_t reopen_ms,
                struct pb_err *err, struct pb_set_last *out)
{
    const struct pb_set_key key = {job->pipeline, job->scene, job->inbox, job->folder};
    if (reopen_ms == 0)
        return 0;
    return pb_set_parts_last(intake->store, &key, pb_job_store_time_ms(intake->store) - reopen_ms,
                             err, out);
}

int pb_earlier_of_set(struct pb_intake *intake, const struct pb_inbox *inbox,
                      const struct pb_assembled *set, struct pb_err *err,
                      struct pb_scene_earlier *out)
{
    struct pb_job job;
    struct pb_set_last last;
    *out = (struct pb_scene_earlier){.n = 0};
    int rc = describe(intake, inbox, set, &job) ? no_memory(err) : 0;
    const struct pb_set_key key = {job.pipeline, job.scene, job.inbox, job.folder};
    rc = rc ? rc : pb_set_parts_busy(intake->store, &key, err, out->busy);
    if (rc == 0)
        rc = find(intake, &job, set->reopen_ms, err, &last);
    if (rc == 1 && out->busy[0] == '\0')
        rc = list_names(intake, last.set_id, err, out);
    pb_job_fini(&job);
    if (rc < 0)
        pb_scene_earlier_fini(out);
    return rc < 0 ? rc : 0;
}

/* Returns -1 if the pipeline does not exist. */
static int64_t reopen_of(struct pb_intake *intake, const char *name)
{
    (void)pthread_rwlock_rdlock(&intake->lock);
    const struct pb_pipeline_config *pipeline = pb_config_pipeline(intake->config, name);
    int64_t reopen_ms = pipeline ? pipeline->input.complete.reopen_ms : -1;
    (void)pthread_rwlock_unlock(&intake->lock);
    return reopen_ms;
}

int pb_earlier_join(struct pb_intake *intake, struct pb_job *job, struct pb_err *err)
{
    return pb_set_parts_join(intake->store, job, reopen_of(intake, job->pipeline), err);
}

int pb_earlier_trim(struct pb_intake *intake, struct pb_err *err)
{
    char name[PB_JOB_NAME_BYTES], after[PB_JOB_NAME_BYTES] = "";
    int rc;
    while ((rc = pb_set_parts_pipeline(intake->store, after, err, name)) == 1) {
        const int64_t reopen_ms = reopen_of(intake, name);
        const int64_t now_ms = reopen_ms == 0 ? INT64_MAX : pb_job_store_time_ms(intake->store);
        rc = pb_set_parts_trim(intake->store, name, reopen_ms, now_ms, err);
        if (rc < 0)
            return rc;
        (void)snprintf(after, sizeof after, "%s", name);
    }
    return rc;
}
