/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/kept.h"

#include "service/jobs/job_store_sql.h"

#include <errno.h>

static int db_fail(struct pb_job_store *store, struct pb_err *err)
{
    return pb_fail(err, PB_E_SERVICE_STATE, "job store: kept inputs: %s",
                   sqlite3_errmsg(store->db));
}

static int read_next(struct pb_job_store *store, const struct pb_kept *after, int64_t before_ms,
                     struct pb_err *err, struct pb_kept *out)
{
    sqlite3_stmt *s = NULL;
    if (store->db == NULL)
        return pb_fail(err, PB_E_SERVICE_STATE, "the job store is not open");
    if (sqlite3_prepare_v2(store->db,
                           "SELECT rowid, since_ms, path FROM kept WHERE since_ms < ?1 AND "
                           "(since_ms, rowid) > (?2, ?3) ORDER BY since_ms, rowid LIMIT 1",
                           -1, &s, NULL) != SQLITE_OK)
        return db_fail(store, err);
    (void)sqlite3_bind_int64(s, 1, before_ms);
    (void)sqlite3_bind_int64(s, 2, after->since_ms);
    (void)sqlite3_bind_int64(s, 3, after->row);
    int rc = sqlite3_step(s), result = 0;
    if (rc == SQLITE_ROW) {
        out->row = sqlite3_column_int64(s, 0);
        out->since_ms = sqlite3_column_int64(s, 1);
        pb_job_read_text(s, 2, out->path, sizeof out->path);
        result = 1;
    } else if (rc != SQLITE_DONE) {
        result = db_fail(store, err);
    }
    (void)sqlite3_finalize(s);
    return result;
}

int pb_kept_next(struct pb_job_store *store, const struct pb_kept *after, int64_t before_ms,
                 struct pb_err *err, struct pb_kept *out)
{
    pb_job_store_take(store);
    int rc = read_next(store, after, before_ms, err, out);
    pb_job_store_leave(store);
    return rc;
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
