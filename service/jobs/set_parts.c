/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/set_parts.h"

#include "service/jobs/job_store_sql.h"
#include "service/jobs/service_time.h"

#include <stdio.h>

#define WHAT "parts of sets"
#define LAST PB_SET_PART_LAST

/* Prepares a statement with texts set from parameter 1 on (borrowed), which must be finalized;
 * NULL and *err. */
static struct pb_sql_statement *prepare(struct pb_job_store *store, const char *sql,
                                        const char *const *text, size_t n, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(store, WHAT, sql, err);
    for (size_t i = 0; s != NULL && i < n; i++)
        pb_sql_set_text(s, (int)i + 1, text[i]);
    return s;
}

/* Reads the first row: 1 and its first n columns, of `bytes` each; 0: no row. Finalizes. */
static int first(struct pb_job_store *store, struct pb_sql_statement *s, char *const *out, size_t n,
                 size_t bytes, struct pb_err *err)
{
    int rc = pb_job_store_step(store, WHAT, s, err);
    for (size_t i = 0; rc > 0 && i < n; i++)
        pb_sql_read_text(s, (int)i, out[i], bytes);
    pb_sql_finalize(s);
    return rc;
}

int pb_set_parts_last(struct pb_job_store *store, const struct pb_set_key *key, int64_t since_ms,
                      struct pb_err *err, struct pb_set_last *out)
{
    const char *const text[] = {key->scene, key->pipeline, key->inbox ? key->inbox : "",
                                key->folder ? key->folder : ""};
    char *const column[] = {out->busy, out->set_id, out->job};
    pb_job_store_lock(store);
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_SET_LAST, err);
    for (int i = 0; i < 4; i++)
        pb_sql_set_text(s, i + 1, text[i]);
    pb_sql_set_int(s, 5, since_ms);
    int rc = pb_job_store_step(store, WHAT, s, err); /* there is always a row */
    for (int i = 0; rc > 0 && i < 3; i++)
        pb_sql_read_text(s, i, column[i], PB_JOB_ID_BYTES);
    rc = rc > 0 ? out->job[0] != '\0' : rc;
    pb_sql_reset(s);
    pb_job_store_unlock(store);
    return rc;
}

int pb_set_parts_join(struct pb_job_store *store, struct pb_job *job, int64_t reopen_ms,
                      struct pb_err *err)
{
    const struct pb_set_key key = {job->pipeline, job->scene, job->inbox, job->folder};
    struct pb_set_last last = {"", "", ""};
    int rc = reopen_ms > 0 ? pb_set_parts_last(store, &key, pb_job_store_time_ms(store) - reopen_ms,
                                               err, &last)
                           : 0;
    if (rc < 0)
        return rc;
    if (rc == 1 || job->set_id[0] == '\0') {
        (void)snprintf(job->set_id, sizeof job->set_id, "%s", rc ? last.set_id : job->id);
        (void)snprintf(job->replaces, sizeof job->replaces, "%s", last.job);
    }
    return 0;
}

int pb_set_parts_in_use(struct pb_job_store *store, const char *set_id, struct pb_err *err)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s = prepare(
        store, "SELECT 1 FROM jobs WHERE status = 1 AND set_id = ?1 LIMIT 1", &set_id, 1, err);
    int rc = first(store, s, NULL, 0, 0, err);
    pb_job_store_unlock(store);
    return rc;
}

static int visit_all(struct pb_job_store *store, struct pb_sql_statement *s,
                     int (*visit)(void *user, const struct pb_set_part *part), void *user,
                     struct pb_err *err)
{
    struct pb_set_part part;
    int result = 0, rc = 0;
    while (result == 0 && (rc = pb_job_store_step(store, WHAT, s, err)) > 0) {
        pb_sql_read_text(s, 0, part.job, sizeof part.job);
        pb_sql_read_text(s, 5, part.maker, sizeof part.maker);
        pb_sql_read_text(s, 1, part.path, sizeof part.path);
        pb_sql_read_text(s, 2, part.directory, sizeof part.directory);
        part.manifest = pb_sql_text(s, 3);
        part.files = pb_sql_blob(s, 4, &part.files_bytes);
        result = visit(user, &part);
    }
    return rc < 0 ? rc : result;
}

static int list(struct pb_job_store *store, const char *sql, const char *set_id,
                int (*visit)(void *user, const struct pb_set_part *part), void *user,
                struct pb_err *err)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s = prepare(store, sql, &set_id, 1, err);
    int rc = visit_all(store, s, visit, user, err);
    pb_sql_finalize(s);
    pb_job_store_unlock(store);
    return rc;
}

#define MAKER_OF(id)                                                                               \
    "coalesce((SELECT a.id FROM jobs a WHERE a.again = " id " AND a.again <> '' AND a.status = 2"  \
    " ORDER BY a.seq DESC LIMIT 1), " id ")"

int pb_set_parts_list(struct pb_job_store *store, const char *set_id,
                      int (*visit)(void *user, const struct pb_set_part *part), void *user,
                      struct pb_err *err)
{
    return list(store,
                "SELECT p.job, p.path, p.directory, p.manifest, k.files, " MAKER_OF(
                    "p.job") " FROM set_parts p LEFT JOIN kept k ON k.path = p.path AND"
                             " k.job = p.job WHERE p.set_id = ?1"
                             " ORDER BY coalesce(p.up_ms, " LAST
                             ") DESC, p.time_ms DESC, p.job DESC",
                set_id, visit, user, err);
}

int pb_set_parts_list_jobs(struct pb_job_store *store, const char *set_id,
                           int (*visit)(void *user, const struct pb_set_part *part), void *user,
                           struct pb_err *err)
{
    return list(
        store,
        "SELECT j.id, j.input, coalesce(j.directory, ''), j.manifest, k.files, " MAKER_OF(
            "j.id") " FROM jobs j LEFT JOIN kept k ON k.path = j.input AND k.job = j.id"
                    " WHERE j.set_id = ?1 AND j.set_id <> '' AND j.status = 2 AND j.owned = 1"
                    " AND j.input IS NOT NULL ORDER BY j.finished_ms DESC, j.seq DESC",
        set_id, visit, user, err);
}

int pb_set_parts_hold(struct pb_job_store *store, const char *path, struct pb_err *err)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s =
        prepare(store, "SELECT 1 FROM set_parts WHERE path = ?1", &path, 1, err);
    int rc = first(store, s, NULL, 0, 0, err);
    pb_job_store_unlock(store);
    return rc;
}

int pb_set_parts_pipeline(struct pb_job_store *store, const char *after, struct pb_err *err,
                          char out_name[PB_JOB_NAME_BYTES])
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s = prepare(store,
                                         "SELECT pipeline FROM set_parts WHERE pipeline > ?1"
                                         " ORDER BY pipeline LIMIT 1",
                                         &after, 1, err);
    int rc = first(store, s, &out_name, 1, PB_JOB_NAME_BYTES, err);
    pb_job_store_unlock(store);
    return rc;
}

struct trim {
    struct pb_job_change base; /* first member, because apply gets it; number: service time now */
    const char *pipeline;
    int64_t reopen_ms;
};

static int remember(struct pb_job_store *store, struct trim *trim)
{
    struct pb_sql_statement *s =
        prepare(store,
                "INSERT INTO set_windows (pipeline, reopen_ms) VALUES (?1, ?2) ON CONFLICT "
                "(pipeline) DO UPDATE SET reopen_ms = ?2",
                &trim->pipeline, 1, &trim->base.err);
    pb_sql_set_int(s, 2, trim->reopen_ms);
    return pb_job_store_run(store, WHAT, s, &trim->base.err);
}

static int apply_trim(struct pb_job_store *store, struct pb_job_change *base)
{
    struct trim *trim = (struct trim *)(void *)base;
    int rc = trim->reopen_ms >= 0 ? remember(store, trim) : 0;
    if (rc < 0)
        return rc;
    /* For a pipeline that was never configured the comparison with its window is NULL. */
    struct pb_sql_statement *s =
        prepare(store,
                "DELETE FROM set_parts WHERE set_id IN (SELECT set_id FROM set_parts"
                " WHERE pipeline = ?1 GROUP BY set_id HAVING max(coalesce(up_ms, " LAST ")) < ?2"
                " -"
                " (SELECT reopen_ms FROM set_windows WHERE pipeline = ?1)) AND"
                " set_id NOT IN (SELECT set_id FROM jobs WHERE set_id <> '' AND"
                " status < 2)",
                &trim->pipeline, 1, &base->err);
    pb_sql_set_int(s, 2, base->number);
    return pb_job_store_run(store, WHAT, s, &base->err);
}

int pb_set_parts_trim(struct pb_job_store *store, const char *pipeline, int64_t reopen_ms,
                      int64_t now_ms, struct pb_err *err)
{
    struct trim trim = {.base = {.apply = apply_trim, .number = now_ms, .bulk = true},
                        .pipeline = pipeline,
                        .reopen_ms = reopen_ms};
    return pb_job_store_commit(store, &trim.base, err);
}
