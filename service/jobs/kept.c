/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/kept.h"

#include "service/jobs/job_store_sql.h"
#include "service/jobs/service_time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHAT    "kept inputs"
#define COLUMNS "SELECT rowid, up_ms, since_ms, said, job, path FROM kept "

/* --- reading --------------------------------------------------------------------------------- */

/* Reads the first row of COLUMNS: 1 and *out, 0 if absent, negative errno. Finalizes; s NULL is an
 * error. */
static int first(struct pb_job_store *store, struct pb_sql_statement *s, struct pb_err *err,
                 struct pb_kept *out)
{
    int rc = pb_job_store_step(store, WHAT, s, err);
    if (rc > 0) {
        out->row = pb_sql_int(s, 0);
        out->up_ms = pb_sql_int(s, 1);
        out->since_ms = pb_sql_int(s, 2);
        out->is_said = pb_sql_int(s, 3) != 0;
        pb_sql_read_text(s, 4, out->job, sizeof out->job);
        pb_sql_read_text(s, 5, out->path, sizeof out->path);
    }
    pb_sql_finalize(s);
    return rc;
}

int pb_kept_next(struct pb_job_store *store, enum pb_kept_kind kind, const struct pb_kept *after,
                 int64_t before_ms, struct pb_err *err, struct pb_kept *out)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, WHAT,
                             COLUMNS "WHERE kind = ?1 AND up_ms < ?2 AND (up_ms, rowid) > "
                                     "(?3, ?4) ORDER BY up_ms, rowid LIMIT 1",
                             err);
    pb_sql_set_int(s, 1, (int)kind);
    pb_sql_set_int(s, 2, before_ms);
    pb_sql_set_int(s, 3, after->row ? after->up_ms : INT64_MIN);
    pb_sql_set_int(s, 4, after->row);
    int rc = first(store, s, err, out);
    pb_job_store_unlock(store);
    return rc;
}

int pb_kept_find(struct pb_job_store *store, const char *path, struct pb_err *err,
                 struct pb_kept *out)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s = pb_job_store_prepare(store, WHAT, COLUMNS "WHERE path = ?1", err);
    pb_sql_set_text(s, 1, path);
    int rc = first(store, s, err, out);
    pb_job_store_unlock(store);
    return rc;
}

int pb_kept_unmoved(struct pb_job_store *store, const char *work, const struct pb_kept *after,
                    struct pb_err *err, struct pb_kept *out)
{
    pb_job_store_lock(store);
    /* Ids begin with digits; the archive may be in work/ as well. */
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        COLUMNS "WHERE path > ?1 || '/0' AND path < ?1 || '/:' AND path > ?2 AND"
                " substr(path, 1, length(?1 || '/' || job || '/')) = ?1 || '/' || job || '/'"
                " ORDER BY path LIMIT 1",
        err);
    pb_sql_set_text(s, 1, work);
    pb_sql_set_text(s, 2, after->path);
    int rc = first(store, s, err, out);
    pb_job_store_unlock(store);
    return rc;
}

/* Reads the list in the first row. Finalizes; s NULL is an error. */
static int read_files(struct pb_job_store *store, struct pb_sql_statement *s, struct pb_err *err,
                      struct pb_file_list *out)
{
    size_t bytes = 0;
    *out = (struct pb_file_list){NULL, 0};
    int rc = pb_job_store_step(store, WHAT, s, err);
    const void *data = rc > 0 ? pb_sql_blob(s, 0, &bytes) : NULL;
    if (data != NULL && pb_file_list_unpack(data, bytes, out) == -ENOMEM)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the files of an input");
    pb_sql_finalize(s);
    return rc < 0 ? rc : 0;
}

int pb_kept_files(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err,
                  struct pb_file_list *out)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, WHAT, "SELECT files FROM kept WHERE rowid = ?1", err);
    pb_sql_set_int(s, 1, kept->row);
    int rc = read_files(store, s, err, out);
    pb_job_store_unlock(store);
    return rc;
}

static int files_of(struct pb_job_store *store, const char *job, const char *path,
                    struct pb_err *err, struct pb_file_list *out)
{
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT, "SELECT files FROM kept WHERE job = ?1 AND path = ?2", err);
    pb_sql_set_text(s, 1, job);
    pb_sql_set_text(s, 2, path);
    return read_files(store, s, err, out);
}

int pb_kept_lists(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err,
                  struct pb_input_lists *out)
{
    *out = (struct pb_input_lists){.is_deleted = false};
    pb_job_store_lock(store);
    char path[PB_FILES_PATH_BYTES];
    int rc = job->manifest.input != NULL
                 ? files_of(store, job->id, job->manifest.input, err, &out->input)
                 : 0;
    if (rc == 0 && pb_job_companion(job, path) != NULL)
        rc = files_of(store, job->id, path, err, &out->companion);
    pb_job_store_unlock(store);
    return rc;
}

/* --- changing -------------------------------------------------------------------------------- */

void pb_input_lists_make(const struct pb_job *job, struct pb_input_lists *out)
{
    char path[PB_FILES_PATH_BYTES];
    *out = (struct pb_input_lists){.is_deleted = false};
    if (job->owned && job->manifest.input != NULL)
        (void)pb_file_list_read(job->manifest.input, &out->input);
    if (job->owned && pb_job_companion(job, path) != NULL)
        (void)pb_file_list_read(path, &out->companion);
}

void pb_input_lists_moved(struct pb_input_lists *lists, const struct pb_job *job)
{
    char path[PB_FILES_PATH_BYTES];
    if (job->manifest.input != NULL)
        pb_file_list_moved(&lists->input, job->manifest.input);
    if (pb_job_companion(job, path) != NULL)
        pb_file_list_moved(&lists->companion, path);
    lists->is_deleted =
        job->owned && job->manifest.input != NULL && access(job->manifest.input, F_OK) != 0;
}

struct update {
    struct pb_job_change base; /* first member, because apply gets it */
    bool is_deleted, is_over;
    char *files[2]; /* lists of the input and of the companion */
    size_t bytes[2];
};

/* Runs a statement whose parameters are set. Finalizes; s NULL is an error. */
static int run(struct pb_job_store *store, struct pb_sql_statement *s, struct pb_err *err)
{
    int rc = pb_job_store_run(store, WHAT, s, err);
    return rc < 0 ? rc : 0;
}

static int set_files(struct pb_job_store *store, const struct update *update, int which,
                     const char *path, struct pb_err *err)
{
    const bool forgets = update->is_over && which == 0;
    if ((update->files[which] == NULL && !forgets) || path == NULL)
        return 0;
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT, "UPDATE kept SET files = ?1 WHERE job = ?2 AND path = ?3", err);
    if (!forgets)
        pb_sql_set_blob(s, 1, update->files[which], update->bytes[which]);
    pb_sql_set_text(s, 2, update->base.jobs[0]->id);
    pb_sql_set_text(s, 3, path);
    return run(store, s, err);
}

/* Sets the service time of the part of a set (set_parts.h) that the job became. */
static int count_part(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT, "UPDATE set_parts SET up_ms = ?2 WHERE job = ?1 AND up_ms IS NULL", err);
    pb_sql_set_text(s, 1, job->id);
    pb_sql_set_int(s, 2, pb_job_store_time_ms(store));
    return run(store, s, err);
}

static int apply_update(struct pb_job_store *store, struct pb_job_change *base)
{
    const struct update *update = (const struct update *)(const void *)base;
    const struct pb_job *job = base->jobs[0];
    char path[PB_FILES_PATH_BYTES];
    int rc = pb_job_row_update(store, job, &base->err);
    if (rc != 0)
        return rc;
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        update->is_deleted ? "DELETE FROM kept WHERE job = ?1"
                           : "UPDATE kept SET up_ms = ?2 WHERE job = ?1 AND up_ms IS NULL",
        &base->err);
    pb_sql_set_text(s, 1, job->id);
    if (!update->is_deleted)
        pb_sql_set_int(s, 2, pb_job_store_time_ms(store));
    rc = run(store, s, &base->err);
    rc = rc || job->set_id[0] == '\0' ? rc : count_part(store, job, &base->err);
    rc = rc ? rc : set_files(store, update, 0, job->manifest.input, &base->err);
    return rc ? rc : set_files(store, update, 1, pb_job_companion(job, path), &base->err);
}

int pb_kept_update(struct pb_job_store *store, const struct pb_job *job,
                   const struct pb_input_lists *lists, struct pb_err *err)
{
    struct pb_job *const jobs[] = {(struct pb_job *)job};
    struct update update = {.base = {.apply = apply_update, .jobs = jobs, .n = 1},
                            .is_deleted = lists->is_deleted,
                            .is_over = lists->is_over};
    update.files[0] = pb_file_list_pack(&lists->input, &update.bytes[0]);
    update.files[1] = pb_file_list_pack(&lists->companion, &update.bytes[1]);
    int rc = pb_job_store_commit(store, &update.base, err);
    free(update.files[0]);
    free(update.files[1]);
    return rc == PB_JOB_STALE ? -ESTALE : rc;
}

static int apply_count(struct pb_job_store *store, struct pb_job_change *change)
{
    return pb_job_row_execute(store, "UPDATE kept SET up_ms = ?1 WHERE up_ms IS NULL",
                              change->number, &change->err);
}

int pb_kept_count(struct pb_job_store *store, struct pb_err *err)
{
    struct pb_kept none;
    pb_job_store_lock(store);
    int rc =
        first(store,
              pb_job_store_prepare(
                  store, WHAT, COLUMNS "WHERE kind IN (0, 1, 2) AND up_ms IS NULL LIMIT 1", err),
              err, &none);
    pb_job_store_unlock(store);
    struct pb_job_change change = {
        .apply = apply_count, .number = pb_job_store_time_ms(store), .bulk = true};
    if (rc == 1) /* an unnecessary commit would wake the disk */
        rc = pb_job_store_commit(store, &change, err);
    return rc < 0 ? rc : 0;
}

struct addition {
    struct pb_job_change base; /* first member, because apply gets it */
    const struct pb_kept *kept;
};

static int apply_add(struct pb_job_store *store, struct pb_job_change *base)
{
    const struct pb_kept *kept = ((const struct addition *)(const void *)base)->kept;
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, WHAT,
                             "INSERT INTO kept (path, since_ms, job, kind, up_ms)"
                             " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (path) DO"
                             " UPDATE SET since_ms = ?2, job = ?3, kind = ?4,"
                             " up_ms = ?5, files = NULL, said = 0",
                             &base->err);
    pb_sql_set_text(s, 1, kept->path);
    pb_sql_set_int(s, 2, kept->since_ms);
    pb_sql_set_text(s, 3, kept->job);
    pb_sql_set_int(s, 4, PB_KEPT_QUARANTINED);
    pb_sql_set_int(s, 5, pb_job_store_time_ms(store));
    return run(store, s, &base->err);
}

int pb_kept_add(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err)
{
    struct addition addition = {.base = {.apply = apply_add, .bulk = true}, .kept = kept};
    return pb_job_store_commit(store, &addition.base, err);
}

static int apply_say(struct pb_job_store *store, struct pb_job_change *change)
{
    return pb_job_row_execute(store, "UPDATE kept SET said = 1 WHERE rowid = ?", change->number,
                              &change->err);
}

int pb_kept_say(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_say, .number = kept->row, .bulk = true};
    int rc = pb_job_store_commit(store, &change, err);
    return rc < 0 ? rc : 0;
}

static int apply_forget(struct pb_job_store *store, struct pb_job_change *change)
{
    return pb_job_row_execute(store, "DELETE FROM kept WHERE rowid = ?", change->number,
                              &change->err);
}

int pb_kept_forget(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_forget, .number = kept->row, .bulk = true};
    int rc = pb_job_store_commit(store, &change, err);
    return rc < 0 ? rc : 0;
}
