/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/contents.h"

#include "pipeline/io/checksum.h"
#include "service/jobs/job_store_sql.h"

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
static struct pb_sql_statement *prepare(struct pb_job_store *store, const char *sql,
                                        const struct pb_content *content, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(store, WHAT, sql, err);
    pb_sql_set_text(s, 1, content->pipeline);
    pb_sql_set_text(s, 2, content->scene);
    pb_sql_set_int(s, 3, content->bytes);
    if (content->checksum != NULL)
        pb_sql_set_text(s, 4, content->checksum);
    return s;
}

static int apply(struct pb_job_store *store, struct pb_job_change *base)
{
    struct change *change = (struct change *)(void *)base;
    const struct pb_content_done *done = change->done;
    struct pb_sql_statement *s =
        prepare(store,
                done == NULL ? "DELETE FROM contents" SAME
                             : "INSERT INTO contents (pipeline, scene,"
                               " bytes, checksum, job, directory, time_ms)"
                               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                               " ON CONFLICT (pipeline, scene, bytes, checksum)"
                               " DO UPDATE SET job = ?5, directory = ?6,"
                               " time_ms = ?7",
                change->content, &base->err);
    if (done != NULL) {
        pb_sql_set_text(s, 5, done->job);
        pb_sql_set_text(s, 6, done->directory);
        pb_sql_set_int(s, 7, done->time_ms);
    }
    int rc = pb_job_store_run(store, WHAT, s, &base->err);
    return rc < 0 ? rc : 0;
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

/* Collects the checksums of the rows, a space after each. */
static int gather(struct pb_job_store *store, struct pb_sql_statement *s, struct pb_err *err,
                  char *sums)
{
    size_t n = 0;
    int rc;
    while ((rc = pb_job_store_step(store, WHAT, s, err)) > 0) {
        const char *sum = pb_sql_text(s, 0);
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
    struct pb_sql_statement *s =
        prepare(store,
                "SELECT checksum FROM contents WHERE pipeline = ?1 AND scene = ?2"
                " AND bytes = ?3 AND time_ms >= ?4 ORDER BY time_ms DESC LIMIT ?5",
                &any, err);
    pb_sql_set_int(s, 4, since_ms);
    pb_sql_set_int(s, 5, PB_CONTENTS_MAX);
    int rc = gather(store, s, err, sums);
    pb_sql_finalize(s);
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
    struct pb_sql_statement *s =
        prepare(store, "SELECT job, time_ms, directory FROM contents" SAME, content, err);
    int rc = pb_job_store_step(store, WHAT, s, err);
    if (rc > 0) {
        pb_sql_read_text(s, 0, out->job, sizeof out->job);
        out->time_ms = pb_sql_int(s, 1);
        pb_sql_read_text(s, 2, out->directory, sizeof out->directory);
    }
    pb_sql_finalize(s);
    return rc;
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
