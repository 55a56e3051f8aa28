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
static int first(struct pb_job_store *store, sqlite3_stmt *s, struct pb_err *err,
                 struct pb_kept *out)
{
    int rc = s != NULL ? sqlite3_step(s) : SQLITE_ERROR, result = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW) {
        out->row = sqlite3_column_int64(s, 0);
        out->up_ms = sqlite3_column_int64(s, 1);
        out->since_ms = sqlite3_column_int64(s, 2);
        out->is_said = sqlite3_column_int(s, 3) != 0;
        pb_job_read_text(s, 4, out->job, sizeof out->job);
        pb_job_read_text(s, 5, out->path, sizeof out->path);
    } else if (s == NULL) {
        result = -EIO;
    } else if (rc != SQLITE_DONE) {
        result = pb_job_store_fail(store, WHAT, err);
    }
    (void)sqlite3_finalize(s);
    return result;
}

int pb_kept_next(struct pb_job_store *store, enum pb_kept_kind kind, const struct pb_kept *after,
                 int64_t before_ms, struct pb_err *err, struct pb_kept *out)
{
    pb_job_store_lock(store);
    sqlite3_stmt *s =
        pb_job_store_prepare(store, WHAT,
                             COLUMNS "WHERE kind = ?1 AND up_ms < ?2 AND (up_ms, rowid) > "
                                     "(?3, ?4) ORDER BY up_ms, rowid LIMIT 1",
                             err);
    if (s != NULL) {
        (void)sqlite3_bind_int(s, 1, (int)kind);
        (void)sqlite3_bind_int64(s, 2, before_ms);
        (void)sqlite3_bind_int64(s, 3, after->row ? after->up_ms : INT64_MIN);
        (void)sqlite3_bind_int64(s, 4, after->row);
    }
    int rc = first(store, s, err, out);
    pb_job_store_unlock(store);
    return rc;
}

int pb_kept_find(struct pb_job_store *store, const char *path, struct pb_err *err,
                 struct pb_kept *out)
{
    pb_job_store_lock(store);
    sqlite3_stmt *s = pb_job_store_prepare(store, WHAT, COLUMNS "WHERE path = ?1", err);
    if (s != NULL)
        (void)sqlite3_bind_text(s, 1, path, -1, SQLITE_STATIC);
    int rc = first(store, s, err, out);
    pb_job_store_unlock(store);
    return rc;
}

int pb_kept_unmoved(struct pb_job_store *store, const char *work, const struct pb_kept *after,
                    struct pb_err *err, struct pb_kept *out)
{
    pb_job_store_lock(store);
    /* Ids begin with digits; the archive may be in work/ as well. */
    sqlite3_stmt *s = pb_job_store_prepare(
        store, WHAT,
        COLUMNS "WHERE path > ?1 || '/0' AND path < ?1 || '/:' AND path > ?2 AND"
                " substr(path, 1, length(?1 || '/' || job || '/')) = ?1 || '/' || job || '/'"
                " ORDER BY path LIMIT 1",
        err);
    if (s != NULL) {
        (void)sqlite3_bind_text(s, 1, work, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(s, 2, after->path, -1, SQLITE_STATIC);
    }
    int rc = first(store, s, err, out);
    pb_job_store_unlock(store);
    return rc;
}

/* Reads the list in the first row. Finalizes; s NULL is an error. */
static int read_files(struct pb_job_store *store, sqlite3_stmt *s, struct pb_err *err,
                      struct pb_file_list *out)
{
    *out = (struct pb_file_list){NULL, 0};
    if (s == NULL)
        return -EIO;
    int rc = sqlite3_step(s), result = 0;
    const void *data = rc == SQLITE_ROW ? sqlite3_column_blob(s, 0) : NULL;
    if (data != NULL) {
        int unpacked = pb_file_list_unpack(data, (size_t)sqlite3_column_bytes(s, 0), out);
        if (unpacked == -ENOMEM)
            result = pb_fail(err, PB_E_MEMORY, "out of memory for the files of an input");
    } else if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        result = pb_job_store_fail(store, WHAT, err);
    }
    (void)sqlite3_finalize(s);
    return result;
}

int pb_kept_files(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err,
                  struct pb_file_list *out)
{
    pb_job_store_lock(store);
    sqlite3_stmt *s =
        pb_job_store_prepare(store, WHAT, "SELECT files FROM kept WHERE rowid = ?1", err);
    if (s != NULL)
        (void)sqlite3_bind_int64(s, 1, kept->row);
    int rc = read_files(store, s, err, out);
    pb_job_store_unlock(store);
    return rc;
}

static int files_of(struct pb_job_store *store, const char *job, const char *path,
                    struct pb_err *err, struct pb_file_list *out)
{
    sqlite3_stmt *s = pb_job_store_prepare(
        store, WHAT, "SELECT files FROM kept WHERE job = ?1 AND path = ?2", err);
    if (s != NULL) {
        (void)sqlite3_bind_text(s, 1, job, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(s, 2, path, -1, SQLITE_STATIC);
    }
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

/* Runs a statement whose parameters are bound. Finalizes; s NULL is an error. */
static int run(struct pb_job_store *store, sqlite3_stmt *s, struct pb_err *err)
{
    int rc = s == NULL                        ? -EIO
             : sqlite3_step(s) == SQLITE_DONE ? 0
                                              : pb_job_store_fail(store, WHAT, err);
    (void)sqlite3_finalize(s);
    return rc;
}

static int set_files(struct pb_job_store *store, const struct update *update, int which,
                     const char *path, struct pb_err *err)
{
    const bool forgets = update->is_over && which == 0;
    if ((update->files[which] == NULL && !forgets) || path == NULL)
        return 0;
    sqlite3_stmt *s = pb_job_store_prepare(
        store, WHAT, "UPDATE kept SET files = ?1 WHERE job = ?2 AND path = ?3", err);
    if (s != NULL) {
        if (!forgets)
            (void)sqlite3_bind_blob64(s, 1, update->files[which], update->bytes[which],
                                      SQLITE_STATIC);
        (void)sqlite3_bind_text(s, 2, update->base.jobs[0]->id, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(s, 3, path, -1, SQLITE_STATIC);
    }
    return run(store, s, err);
}

/* Sets the service time of the part of a set (set_parts.h) that the job became. */
static int count_part(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    sqlite3_stmt *s = pb_job_store_prepare(
        store, WHAT, "UPDATE set_parts SET up_ms = ?2 WHERE job = ?1 AND up_ms IS NULL", err);
    if (s != NULL) {
        (void)sqlite3_bind_text(s, 1, job->id, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(s, 2, pb_job_store_time_ms(store));
    }
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
    sqlite3_stmt *s = pb_job_store_prepare(
        store, WHAT,
        update->is_deleted ? "DELETE FROM kept WHERE job = ?1"
                           : "UPDATE kept SET up_ms = ?2 WHERE job = ?1 AND up_ms IS NULL",
        &base->err);
    if (s != NULL) {
        (void)sqlite3_bind_text(s, 1, job->id, -1, SQLITE_STATIC);
        if (!update->is_deleted)
            (void)sqlite3_bind_int64(s, 2, pb_job_store_time_ms(store));
    }
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
    sqlite3_stmt *s = pb_job_store_prepare(store, WHAT,
                                           "INSERT OR REPLACE INTO kept (path, since_ms, job, "
                                           "kind, up_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
                                           &base->err);
    if (s != NULL) {
        (void)sqlite3_bind_text(s, 1, kept->path, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(s, 2, kept->since_ms);
        (void)sqlite3_bind_text(s, 3, kept->job, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int(s, 4, PB_KEPT_QUARANTINED);
        (void)sqlite3_bind_int64(s, 5, pb_job_store_time_ms(store));
    }
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
