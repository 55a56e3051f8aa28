/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/again_rows.h"

#include "service/jobs/job_store_sql.h"

#define WHAT "jobs that make products again"

/* Reads the first column of the first row of a statement with one text: 1; 0 if there is no row. */
static int first(struct pb_job_store *store, const char *sql, const char *text, struct pb_err *err,
                 char *out, size_t bytes)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s = pb_job_store_prepare(store, WHAT, sql, err);
    pb_sql_set_text(s, 1, text);
    int rc = pb_job_store_step(store, WHAT, s, err);
    if (rc > 0)
        pb_sql_read_text(s, 0, out, bytes);
    pb_sql_finalize(s);
    pb_job_store_unlock(store);
    return rc;
}

int pb_again_waits(struct pb_job_store *store, const char *job, struct pb_err *err,
                   char out_job[PB_JOB_ID_BYTES])
{
    return first(store,
                 "SELECT id FROM jobs WHERE again = ?1 AND again <> '' AND status < 2 LIMIT 1", job,
                 err, out_job, PB_JOB_ID_BYTES);
}

/* Checks the inputs of the job itself, of the other jobs of its set, and of its archive. */
int pb_again_holds(struct pb_job_store *store, const char *path, struct pb_err *err)
{
    char id[PB_JOB_ID_BYTES];
    return first(store,
                 "SELECT a.id FROM kept k JOIN jobs a ON a.again = k.job WHERE k.path = ?1"
                 " AND a.again <> '' AND a.status < 2 UNION ALL"
                 " SELECT a.id FROM kept k JOIN jobs p ON p.id = k.job"
                 " JOIN jobs a ON a.set_id = p.set_id WHERE k.path = ?1 AND a.set_id <> ''"
                 " AND a.again <> '' AND a.status < 2 UNION ALL"
                 " SELECT a.id FROM kept k JOIN jobs a ON a.archive = k.job WHERE k.path = ?1"
                 " AND a.archive <> '' AND a.status < 2 LIMIT 1",
                 path, err, id, sizeof id);
}
