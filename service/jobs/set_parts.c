/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/set_parts.h"

#include "config/base/clock.h"
#include "service/jobs/job_store_sql.h"

#include <errno.h>
#include <stdio.h>

#define WHAT "parts of sets"

/* A statement with texts bound from parameter 1 on (borrowed), to be finalized; NULL and *err. */
static sqlite3_stmt *prepare(struct pb_job_store *store, const char *sql, const char *const *text,
                             size_t n, struct pb_err *err)
{
    sqlite3_stmt *s = pb_job_store_prepare(store, WHAT, sql, err);
    for (size_t i = 0; s != NULL && i < n; i++)
        (void)sqlite3_bind_text(s, (int)i + 1, text[i], -1, SQLITE_STATIC);
    return s;
}

/* The first row: 1 and its first n columns, of `bytes` each; 0 there is none. Finalizes. */
static int first(struct pb_job_store *store, sqlite3_stmt *s, char *const *out, size_t n,
                 size_t bytes, struct pb_err *err)
{
    int rc = sqlite3_step(s), result = rc == SQLITE_ROW;
    for (size_t i = 0; rc == SQLITE_ROW && i < n; i++)
        pb_job_read_text(s, (int)i, out[i], bytes);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        result = pb_job_store_fail(store, WHAT, err);
    (void)sqlite3_finalize(s);
    return result;
}

int pb_set_parts_last(struct pb_job_store *store, const struct pb_set_key *key, int64_t since_ms,
                      struct pb_err *err, struct pb_set_last *out)
{
    const char *const text[] = {key->scene, key->pipeline, key->folder ? key->folder : ""};
    char *const columns[] = {out->set_id, out->job};
    pb_job_store_take(store);
    sqlite3_stmt *s = prepare(store,
                              "SELECT set_id, job FROM set_parts WHERE scene = ?1 AND pipeline = ?2"
                              " AND folder = ?3 AND time_ms >= ?4 ORDER BY time_ms DESC LIMIT 1",
                              text, 3, err);
    if (s != NULL)
        (void)sqlite3_bind_int64(s, 4, since_ms);
    int rc = s ? first(store, s, columns, 2, PB_JOB_ID_BYTES, err) : -EIO;
    pb_job_store_leave(store);
    return rc;
}

int pb_set_parts_join(struct pb_job_store *store, struct pb_job *job, int64_t reopen_ms,
                      struct pb_err *err)
{
    const struct pb_set_key key = {job->pipeline, job->scene, job->folder};
    struct pb_set_last last = {"", ""};
    int rc = reopen_ms > 0
                 ? pb_set_parts_last(store, &key, pb_clock_wall_ms() - reopen_ms, err, &last)
                 : 0;
    if (rc < 0)
        return rc;
    if (rc == 1 || job->set_id[0] == '\0') {
        (void)snprintf(job->set_id, sizeof job->set_id, "%s", rc ? last.set_id : job->id);
        (void)snprintf(job->replaces, sizeof job->replaces, "%s", last.job);
    }
    return 0;
}

int pb_set_parts_busy(struct pb_job_store *store, const struct pb_set_key *key, struct pb_err *err,
                      char out_job[PB_JOB_ID_BYTES])
{
    const char *const text[] = {key->scene, key->pipeline, key->folder ? key->folder : ""};
    pb_job_store_take(store);
    sqlite3_stmt *s = prepare(store,
                              "SELECT id FROM jobs WHERE set_id <> '' AND status < 2 AND"
                              " scene = ?1 AND pipeline = ?2 AND ifnull(folder, '') = ?3 LIMIT 1",
                              text, 3, err);
    int rc = s ? first(store, s, &out_job, 1, PB_JOB_ID_BYTES, err) : -EIO;
    pb_job_store_leave(store);
    return rc;
}

static int visit_all(struct pb_job_store *store, sqlite3_stmt *s,
                     int (*visit)(void *user, const struct pb_set_part *part), void *user,
                     struct pb_err *err)
{
    struct pb_set_part part;
    int result = 0, rc = SQLITE_DONE;
    while (result == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        pb_job_read_text(s, 0, part.job, sizeof part.job);
        pb_job_read_text(s, 1, part.path, sizeof part.path);
        pb_job_read_text(s, 2, part.directory, sizeof part.directory);
        part.delivered = (const char *)sqlite3_column_text(s, 3);
        result = visit(user, &part);
    }
    return result != 0 || rc == SQLITE_DONE ? result : pb_job_store_fail(store, WHAT, err);
}

int pb_set_parts_list(struct pb_job_store *store, const char *set_id,
                      int (*visit)(void *user, const struct pb_set_part *part), void *user,
                      struct pb_err *err)
{
    pb_job_store_take(store);
    sqlite3_stmt *s = prepare(store,
                              "SELECT job, path, directory, delivered FROM set_parts"
                              " WHERE set_id = ?1 ORDER BY time_ms DESC, job DESC",
                              &set_id, 1, err);
    int rc = s ? visit_all(store, s, visit, user, err) : -EIO;
    (void)sqlite3_finalize(s);
    pb_job_store_leave(store);
    return rc;
}

int pb_set_parts_hold(struct pb_job_store *store, const char *path, struct pb_err *err)
{
    pb_job_store_take(store);
    sqlite3_stmt *s = prepare(store, "SELECT 1 FROM set_parts WHERE path = ?1", &path, 1, err);
    int rc = s ? first(store, s, NULL, 0, 0, err) : -EIO;
    pb_job_store_leave(store);
    return rc;
}

int pb_set_parts_pipeline(struct pb_job_store *store, const char *after, struct pb_err *err,
                          char out_name[PB_JOB_NAME_BYTES])
{
    pb_job_store_take(store);
    sqlite3_stmt *s = prepare(store,
                              "SELECT pipeline FROM set_parts WHERE pipeline > ?1"
                              " ORDER BY pipeline LIMIT 1",
                              &after, 1, err);
    int rc = s ? first(store, s, &out_name, 1, PB_JOB_NAME_BYTES, err) : -EIO;
    pb_job_store_leave(store);
    return rc;
}

struct trim {
    struct pb_job_change base; /* first: apply gets it */
    const char *pipeline;
};

static int apply_trim(struct pb_job_store *store, struct pb_job_change *base)
{
    const struct trim *trim = (const struct trim *)(const void *)base;
    sqlite3_stmt *s = prepare(store,
                              "DELETE FROM set_parts WHERE set_id IN (SELECT set_id FROM set_parts"
                              " WHERE pipeline = ?1 GROUP BY set_id HAVING max(time_ms) < ?2) AND"
                              " set_id NOT IN (SELECT set_id FROM jobs WHERE set_id <> '' AND"
                              " status < 2)",
                              &trim->pipeline, 1, &base->err);
    if (s == NULL)
        return -EIO;
    (void)sqlite3_bind_int64(s, 2, base->number);
    int rc = sqlite3_step(s) == SQLITE_DONE ? sqlite3_changes(store->db)
                                            : pb_job_store_fail(store, WHAT, &base->err);
    (void)sqlite3_finalize(s);
    return rc;
}

int pb_set_parts_trim(struct pb_job_store *store, const char *pipeline, int64_t before_ms,
                      struct pb_err *err)
{
    struct trim trim = {.base = {.apply = apply_trim, .number = before_ms, .bulk = true},
                        .pipeline = pipeline};
    return pb_job_store_commit(store, &trim.base, err);
}
