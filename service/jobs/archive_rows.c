/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/archive_rows.h"

#include "config/base/base_name.h"
#include "config/base/json_reader.h"
#include "service/jobs/job_store_sql.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT     "scenes of an archive"
#define ID_TRIES 64
/* A job that makes products again is no job of the archive. */
#define OF_ARCHIVE " FROM jobs WHERE archive = ?1 AND archive <> '' AND again = '' AND "
#define SCENE      "SELECT " PB_JOB_COLUMNS OF_ARCHIVE "scene = ?2 LIMIT 1"
#define FAILED                                                                                     \
    "SELECT " PB_JOB_COLUMNS OF_ARCHIVE "status = 3 AND scene > ?2 ORDER BY scene LIMIT 1"
#define NAMED_MAX 3 /* scenes in an error message */

/* --- split ----------------------------------------------------------------------------------- */

struct change {
    struct pb_job_change base; /* first member, because apply gets it */
    const struct pb_archive_split *split;
    struct pb_job *jobs; /* jobs that wait; room for all scenes */
    size_t n;
    struct pb_job archive; /* its new row */
};

/* Finds a job by one of the statements above: 1 and *out, 0 = not found, negative errno. */
static int find(struct pb_job_store *store, const char *sql, const char *archive, const char *scene,
                struct pb_err *err, struct pb_job *out)
{
    struct pb_sql_statement *s = pb_job_store_prepare(store, WHAT, sql, err);
    pb_sql_set_text(s, 1, archive);
    pb_sql_set_text(s, 2, scene);
    int rc = pb_job_store_step(store, WHAT, s, err);
    if (rc > 0 && !pb_job_fields_read(s, out))
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for a job");
    pb_sql_finalize(s);
    return rc;
}

/* Sets state and checksum of the archive in the manifest of a scene's job. 0 or -ENOMEM. */
static int note_archive(struct pb_scene_manifest *manifest, const struct pb_scene_manifest *read)
{
    const struct pb_manifest_entry *from = read != NULL && read->n_entries > 0 ? read->entry : NULL;
    for (size_t i = 0; from != NULL && i < manifest->n_entries; i++) {
        struct pb_manifest_entry *entry = &manifest->entry[i];
        if (entry->is_folder || strcmp(pb_base_name(entry->path), pb_base_name(from->path)) != 0)
            continue;
        char *checksum = from->checksum != NULL ? strdup(from->checksum) : NULL;
        if (checksum == NULL)
            return -ENOMEM;
        free(entry->checksum);
        entry->checksum = checksum;
        entry->bytes = from->bytes;
        entry->inode = from->inode;
        entry->mtime_ns = from->mtime_ns;
        entry->ctime_ns = from->ctime_ns;
    }
    return 0;
}

/* Sets the members that a job of a scene has from that of the archive. The companion was verified
 * by the archive's job. */
static int inherit(struct pb_job *job, const struct pb_archive_split *split, struct pb_err *err)
{
    const struct pb_job *archive = split->archive;
    (void)snprintf(job->name, sizeof job->name, "%s", archive->name);
    (void)snprintf(job->pipeline, sizeof job->pipeline, "%s", archive->pipeline);
    (void)snprintf(job->identity, sizeof job->identity, "%s", archive->identity);
    (void)snprintf(job->archive, sizeof job->archive, "%s", archive->id);
    job->priority = archive->priority;
    job->uid = archive->uid;
    job->anyway = archive->anyway;
    job->delivered_ms = archive->delivered_ms;
    pb_scene_manifest_fini(&job->manifest);
    if (pb_job_set(&job->inbox, archive->inbox) != 0 ||
        pb_job_set(&job->folder, archive->folder) != 0 ||
        pb_scene_manifest_copy(&job->manifest, &archive->manifest) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for a job");
    pb_scene_manifest_remove(&job->manifest, PB_ROLE_COMPANION);
    return note_archive(&job->manifest, split->read) == 0
               ? 0
               : pb_fail(err, PB_E_MEMORY, "out of memory for a job");
}

static int insert(struct pb_job_store *store, const struct pb_archive_split *split,
                  const char *scene, struct pb_job *job, struct pb_err *err)
{
    int rc;
    pb_job_init(job);
    (void)snprintf(job->scene, sizeof job->scene, "%s", scene);
    job->created_ms = job->updated_ms = split->wall_ms;
    if ((rc = inherit(job, split, err)) != 0)
        return rc;
    rc = -EEXIST;
    for (int i = 0; i < ID_TRIES && rc == -EEXIST; i++) {
        int result = 0;
        split->make_id(job->id);
        rc = pb_job_row_insert(store, &job, 1, &result, err);
        rc = rc ? rc : result;
    }
    return rc == -EEXIST ? pb_fail(err, PB_E_SERVICE_STATE, "no free id for a job") : rc;
}

/* Returns 1 if the job waits now, 0 if it stays as it is. A client's retry computes skipped
 * duplicates as well. */
static int reopen(struct pb_job_store *store, const struct pb_archive_split *split,
                  struct pb_job *job, struct pb_err *err)
{
    if ((pb_job_is_skipped(job) && !split->archive->anyway) ||
        !pb_job_may(job->status, PB_JOB_ACCEPTED) || job->status == PB_JOB_RUNNING)
        return 0;
    (void)pb_job_move(job, PB_JOB_ACCEPTED, split->wall_ms);
    int rc = inherit(job, split, err);
    rc = rc ? rc : pb_job_row_update(store, job, err);
    return rc ? rc : 1;
}

/* Adds the scene to the report. */
static void print_scene(struct pb_json *json, const char *scene, const char *job,
                        const char *status, const char *code)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "scene", scene);
    pb_json_string(json, "job", job);
    if (status != NULL)
        pb_json_string(json, "status", status);
    if (code != NULL)
        pb_json_string(json, "code", code);
    pb_json_end(json);
}

static void free_jobs(struct change *change)
{
    for (size_t i = 0; i < change->n; i++)
        pb_job_fini(&change->jobs[i]);
    change->n = 0;
}

/* Makes the jobs of all scenes wait; json gets them. */
static int split_scenes(struct pb_job_store *store, struct change *change, struct pb_json *json)
{
    const struct pb_archive_split *split = change->split;
    struct pb_err *err = &change->base.err;
    for (size_t i = 0; i < split->n; i++) {
        struct pb_job *job = &change->jobs[change->n];
        int rc = find(store, SCENE, split->archive->id, split->scenes[i], err, job);
        if (rc == 0) {
            change->n++;
            rc = insert(store, split, split->scenes[i], job, err);
        } else if (rc == 1) {
            change->n++;
            rc = reopen(store, split, job, err);
        }
        if (rc < 0)
            return rc;
        print_scene(json, split->scenes[i], job->id, NULL, NULL);
        if (rc == 0 && job->status != PB_JOB_ACCEPTED) /* it is over */
            pb_job_fini(&change->jobs[--change->n]);
    }
    return 0;
}

static int apply_split(struct pb_job_store *store, struct pb_job_change *base)
{
    struct change *change = (struct change *)(void *)base;
    struct pb_job *archive = &change->archive;
    free_jobs(change);
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_array(json, "scenes");
    int rc = split_scenes(store, change, json);
    pb_json_end(json);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    if (rc == 0 && (text == NULL || pb_job_set(&archive->report, text) != 0))
        rc = pb_fail(&base->err, PB_E_MEMORY, "out of memory for a report");
    pb_json_destroy(json);
    rc = rc ? rc : pb_job_row_update(store, archive, &base->err);
    return rc == PB_JOB_STALE ? -ESTALE : rc; /* negative: the rows of the scenes are rolled back */
}

/* Returns the archive's job to the queue, where it waits for its scenes. */
static void await_scenes(struct pb_job *archive, int64_t wall_ms)
{
    (void)pb_job_move(archive, PB_JOB_ACCEPTED, wall_ms);
    (void)snprintf(archive->stage, sizeof archive->stage, "scenes");
}

int pb_archive_rows_split(struct pb_job_store *store, const struct pb_archive_split *split,
                          struct pb_err *err, struct pb_job **out_jobs, size_t *out_n)
{
    struct change change = {.base = {.apply = apply_split}, .split = split};
    change.jobs = calloc(split->n + 1, sizeof *change.jobs);
    if (change.jobs == NULL || pb_job_copy(&change.archive, split->archive) != 0) {
        free(change.jobs);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the scenes of an archive");
    }
    await_scenes(&change.archive, split->wall_ms);
    int rc = pb_job_store_commit(store, &change.base, err);
    if (rc < 0) {
        pb_archive_rows_free(change.jobs, change.n);
        pb_job_fini(&change.archive);
        return rc;
    }
    /* Its id, scene and archive are not written: other threads may read them. */
    await_scenes(split->archive, split->wall_ms);
    split->archive->report = change.archive.report;
    change.archive.report = NULL;
    pb_job_fini(&change.archive);
    *out_jobs = change.jobs;
    *out_n = change.n;
    return 0;
}

void pb_archive_rows_free(struct pb_job *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pb_job_fini(&jobs[i]);
    free(jobs);
}

/* --- cancel ---------------------------------------------------------------------------------- */

/* Appends the ids; the capacity is the next power of two. */
static int read_ids(struct pb_job_store *store, struct pb_sql_statement *s, struct pb_err *err,
                    struct pb_archive_ids *out)
{
    int rc;
    while ((rc = pb_job_store_step(store, WHAT, s, err)) > 0) {
        const size_t n = out->n;
        if ((n & (n - 1)) == 0) {
            void *more = realloc(out->id, (n > 0 ? 2 * n : 1) * sizeof *out->id);
            if (more == NULL)
                return pb_fail(err, PB_E_MEMORY, "out of memory for the scenes of an archive");
            out->id = more;
        }
        pb_sql_read_text(s, 0, out->id[out->n++], sizeof *out->id);
    }
    return rc;
}

int pb_archive_rows_list_open(struct pb_job_store *store, const char *archive, struct pb_err *err,
                              struct pb_archive_ids *out)
{
    *out = (struct pb_archive_ids){.n = 0};
    pb_job_store_lock(store);
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, WHAT,
                             "SELECT id FROM jobs WHERE archive = ?1 AND archive <> '' AND"
                             " status < 2 ORDER BY seq",
                             err);
    pb_sql_set_text(s, 1, archive);
    int rc = read_ids(store, s, err, out);
    pb_sql_finalize(s);
    pb_job_store_unlock(store);
    return rc;
}

/* --- sum ------------------------------------------------------------------------------------- */

/* Counts of scenes by their ends, and the first names for a message. */
struct sum {
    size_t n, failed, cancelled, named;
    char names[700];
};

static void count_scene(struct sum *sum, const char *scene, const struct pb_job *job)
{
    const bool failed = job->status != PB_JOB_SUCCESSFUL && job->status != PB_JOB_DISMISSED;
    const bool cancelled = job->status == PB_JOB_DISMISSED && !pb_job_is_skipped(job);
    const size_t at = strlen(sum->names);
    sum->n++;
    sum->failed += failed;
    sum->cancelled += cancelled;
    if (!failed && !cancelled)
        return;
    if (sum->named++ < NAMED_MAX)
        (void)snprintf(sum->names + at, sizeof sum->names - at, "%s%.150s (%s)", at > 0 ? ", " : "",
                       scene, job->error.code);
    else if (sum->named == NAMED_MAX + 1)
        (void)snprintf(sum->names + at, sizeof sum->names - at, ", ...");
}

static int sum_scenes(struct pb_job_store *store, const char *archive,
                      const struct pb_json_value *scenes, struct pb_json *json, struct sum *sum,
                      struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < pb_json_count(scenes); i++) {
        const char *scene = pb_json_get_text(pb_json_at(scenes, i), "scene");
        struct pb_job job = {.status = PB_JOB_FAILED};
        scene = scene != NULL ? scene : "?"; /* a damaged list */
        rc = find(store, SCENE, archive, scene, err, &job);
        if (rc == 0) /* its row was removed from the store */
            pb_job_fail(&job, PB_E_JOB_UNKNOWN, "its job is not in the job store");
        if (rc >= 0) {
            count_scene(sum, scene, &job);
            print_scene(json, scene, rc ? job.id : NULL, pb_job_status_name(job.status),
                        job.error.code[0] != '\0' ? job.error.code : NULL);
        }
        pb_job_fini(&job);
    }
    return rc < 0 ? rc : 0;
}

/* Sets the error of the archive's job; returns its final status. */
static enum pb_job_status judge(const struct sum *sum, struct pb_job *archive)
{
    memset(&archive->error, 0, sizeof archive->error);
    if (sum->n == 0) {
        pb_job_fail_words(archive, pb_code_id(PB_E_SERVICE_STATE),
                          "the list of its scenes is missing or damaged in the job store",
                          "'pushbroom retry' lists the scenes again");
        return PB_JOB_FAILED;
    }
    if (sum->failed > 0)
        pb_job_fail(archive, PB_E_INPUT_SCENES, "%zu of %zu scenes failed%s: %s", sum->failed,
                    sum->n, sum->cancelled > 0 ? ", others were cancelled" : "", sum->names);
    else if (sum->cancelled > 0)
        pb_job_fail(archive, PB_E_JOB_DISMISSED, "%zu of %zu scenes were cancelled: %s",
                    sum->cancelled, sum->n, sum->names);
    return sum->failed > 0      ? PB_JOB_FAILED
           : sum->cancelled > 0 ? PB_JOB_DISMISSED
                                : PB_JOB_SUCCESSFUL;
}

int pb_archive_rows_sum(struct pb_job_store *store, struct pb_job *archive, struct pb_err *err,
                        enum pb_job_status *out_status)
{
    struct pb_json_value *report = NULL;
    struct sum sum = {.n = 0};
    const size_t n = archive->report != NULL ? strlen(archive->report) : 0;
    if (n > 0 && pb_json_parse(archive->report, n, n, &report) == -ENOMEM)
        return pb_fail(err, PB_E_MEMORY, "out of memory for a report");
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_array(json, "scenes");
    pb_job_store_lock(store);
    int rc = sum_scenes(store, archive->id, pb_json_get(report, "scenes", NULL), json, &sum, err);
    pb_job_store_unlock(store);
    pb_json_end(json);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    if (rc == 0 && (text == NULL || pb_job_set(&archive->report, text) != 0))
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for a report");
    if (rc == 0)
        *out_status = judge(&sum, archive);
    pb_json_destroy(json);
    pb_json_release(report);
    return rc;
}

/* --- drop ------------------------------------------------------------------------------------ */

/* The scenes are chosen by their state, not by the report: it is cleared when a retry begins. */
static int apply_drop(struct pb_job_store *store, struct pb_job_change *base)
{
    const struct pb_job *archive = base->jobs[0];
    char last[PB_JOB_NAME_BYTES] = "";
    struct pb_job job;
    int rc = pb_job_row_update(store, archive, &base->err);
    while (rc == 0 && (rc = find(store, FAILED, archive->id, last, &base->err, &job)) == 1) {
        (void)snprintf(last, sizeof last, "%s", job.scene);
        pb_job_drop(&job, base->number);
        rc = pb_job_row_update(store, &job, &base->err);
        pb_job_fini(&job);
    }
    return rc;
}

int pb_archive_rows_drop(struct pb_job_store *store, const struct pb_job *archive, int64_t wall_ms,
                         struct pb_err *err)
{
    struct pb_job *const jobs[] = {(struct pb_job *)archive};
    struct pb_job_change change = {.apply = apply_drop, .jobs = jobs, .n = 1, .number = wall_ms};
    int rc = pb_job_store_commit(store, &change, err);
    return rc == PB_JOB_STALE ? -ESTALE : rc;
}

/* --- scenes by their states ------------------------------------------------------------------ */

/* Returns 1 if the statement, with the text of the archive and (NULL: without) another text for its
 * second parameter, has a row; 0 or negative errno. */
static int has_row(struct pb_job_store *store, const char *sql, const char *archive,
                   const char *second, struct pb_err *err)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s = pb_job_store_prepare(store, WHAT, sql, err);
    pb_sql_set_text(s, 1, archive);
    if (second != NULL)
        pb_sql_set_text(s, 2, second);
    int rc = pb_job_store_step(store, WHAT, s, err);
    pb_sql_finalize(s);
    pb_job_store_unlock(store);
    return rc;
}

int pb_archive_rows_is_open(struct pb_job_store *store, const char *archive, struct pb_err *err)
{
    return has_row(store,
                   "SELECT 1 FROM jobs WHERE archive = ?1 AND archive <> '' AND status < 2"
                   " LIMIT 1",
                   archive, NULL, err);
}

int pb_archive_rows_skipped(struct pb_job_store *store, const char *archive, struct pb_err *err)
{
    return has_row(store, "SELECT 1" OF_ARCHIVE "status = 4 AND error_code = ?2 LIMIT 1", archive,
                   pb_code_id(PB_E_INPUT_DUPLICATE), err);
}
