/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/contents.h"

#include "pipeline/io/checksum.h"
#include "service/jobs/job_store_sql.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT "contents"

#define SAME " WHERE pipeline = ?1 AND scene = ?2 AND bytes = ?3 AND checksum = ?4"

struct change {
    struct pb_job_change base; /* first member, because apply gets it */
    const struct pb_content *content;
    const struct pb_content_done *done; /* NULL: the row is deleted */
};

/* Prepares a statement with the content bound from parameter 1 on, which must be finalized; NULL
 * and *err. */
static sqlite3_stmt *prepare(struct pb_job_store *store, const char *sql,
                             const struct pb_content *content, struct pb_err *err)
{
    sqlite3_stmt *s = pb_job_store_prepare(store, WHAT, sql, err);
    if (s == NULL)
        return NULL;
    (void)sqlite3_bind_text(s, 1, content->pipeline, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 2, content->scene, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 3, content->bytes);
    if (content->checksum != NULL)
        (void)sqlite3_bind_text(s, 4, content->checksum, -1, SQLITE_STATIC);
    return s;
}

static int apply(struct pb_job_store *store, struct pb_job_change *base)
{
    struct change *change = (struct change *)(void *)base;
    const struct pb_content_done *done = change->done;
    sqlite3_stmt *s = prepare(store,
                              done == NULL ? "DELETE FROM contents" SAME
                                           : "INSERT OR REPLACE INTO contents (pipeline, scene,"
                                             " bytes, checksum, job, directory, time_ms)"
                                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                              change->content, &base->err);
    if (s == NULL)
        return -EIO;
    if (done != NULL) {
        (void)sqlite3_bind_text(s, 5, done->job, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(s, 6, done->directory, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(s, 7, done->time_ms);
    }
    int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : pb_job_store_fail(store, WHAT, &base->err);
    (void)sqlite3_finalize(s);
    return rc;
}

int pb_contents_add(struct pb_job_store *store, const struct pb_content *content,
                    const struct pb_content_done *done, struct pb_err *err)
{
    struct change change = {.base = {.apply = apply}, .content = content, .done = done};
    return pb_job_store_commit(store, &change.base, err);
}

int pb_contents_forget(struct pb_job_store *store, const struct pb_content *content,
                       struct pb_err *err)
{
    struct change change = {.base = {.apply = apply}, .content = content};
    return pb_job_store_commit(store, &change.base, err);
}

/* Collects the checksums of the rows, a space after each; returns SQLITE_DONE or an error of
 * SQLite. */
static int gather(sqlite3_stmt *s, char *sums)
{
    size_t n = 0;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *sum = (const char *)sqlite3_column_text(s, 0);
        if (sum == NULL || strlen(sum) >= PB_CHECKSUM_TEXT_BYTES)
            continue;
        n += (size_t)snprintf(sums + n, PB_CHECKSUM_TEXT_BYTES + 1, "%s ", sum);
    }
    sums[n] = '\0';
    return rc;
}

static int read_like(struct pb_job_store *store, const struct pb_content *content, int64_t since_ms,
                     struct pb_err *err, char *sums)
{
    struct pb_content any = *content;
    any.checksum = NULL;
    sqlite3_stmt *s = prepare(store,
                              "SELECT checksum FROM contents WHERE pipeline = ?1 AND scene = ?2"
                              " AND bytes = ?3 AND time_ms >= ?4 ORDER BY time_ms DESC LIMIT ?5",
                              &any, err);
    if (s == NULL)
        return -EIO;
    (void)sqlite3_bind_int64(s, 4, since_ms);
    (void)sqlite3_bind_int(s, 5, PB_CONTENTS_MAX);
    int rc = gather(s, sums) == SQLITE_DONE ? 0 : pb_job_store_fail(store, WHAT, err);
    (void)sqlite3_finalize(s);
    return rc;
}

int pb_contents_like(struct pb_job_store *store, const struct pb_content *content, int64_t since_ms,
                     struct pb_err *err, char **out_sums)
{
    char *sums = malloc((size_t)PB_CONTENTS_MAX * PB_CHECKSUM_TEXT_BYTES + 1);
    if (sums == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_job_store_lock(store);
    int rc = read_like(store, content, since_ms, err, sums);
    pb_job_store_unlock(store);
    if (rc == 0 && sums[0] != '\0') {
        *out_sums = sums;
        return 0;
    }
    free(sums);
    if (rc == 0)
        *out_sums = NULL;
    return rc;
}

static int read_one(struct pb_job_store *store, const struct pb_content *content,
                    struct pb_err *err, struct pb_content_done *out)
{
    sqlite3_stmt *s =
        prepare(store, "SELECT job, time_ms, directory FROM contents" SAME, content, err);
    if (s == NULL)
        return -EIO;
    int rc = sqlite3_step(s), result = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW) {
        pb_job_read_text(s, 0, out->job, sizeof out->job);
        out->time_ms = sqlite3_column_int64(s, 1);
        pb_job_read_text(s, 2, out->directory, sizeof out->directory);
    } else if (rc != SQLITE_DONE) {
        result = pb_job_store_fail(store, WHAT, err);
    }
    (void)sqlite3_finalize(s);
    return result;
}

int pb_contents_find(struct pb_job_store *store, const struct pb_content *content,
                     struct pb_err *err, struct pb_content_done *out)
{
    pb_job_store_lock(store);
    int rc = read_one(store, content, err, out);
    pb_job_store_unlock(store);
    return rc;
}

static int apply_trim(struct pb_job_store *store, struct pb_job_change *change)
{
    return pb_job_row_execute(store,
                              "DELETE FROM contents WHERE rowid IN (SELECT rowid FROM contents"
                              " WHERE time_ms < ?1 ORDER BY time_ms LIMIT 1000)",
                              change->number, &change->err);
}

int pb_contents_trim(struct pb_job_store *store, int64_t before_ms, struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_trim, .number = before_ms, .bulk = true};
    return pb_job_store_commit(store, &change, err);
}
