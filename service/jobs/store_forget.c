/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A transaction handles at most BATCH jobs, because other nodes wait for the rows that it changes,
 * and the server limits the time of a statement. Rows that another transaction has locked are
 * skipped, and changed in the next walk over all jobs; therefore no transaction waits for the
 * other. The row of the node is removed last: until then the command can be repeated. */
#include "service/jobs/store_forget.h"

#include "service/base/files.h"
#include "service/jobs/job.h"
#include "service/jobs/sql.h"
#include "service/jobs/sql_postgres.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BATCH  "2000"
#define UNTIED "needs = '' AND needs_gpu = 0" /* jobs that are not bound to a configuration */

struct forget {
    struct pb_sql *db;
    const struct pb_store_forgetting *options;
    const char *node;
    int to_mend;
    char work[PB_FILES_PATH_BYTES], archive[PB_FILES_PATH_BYTES], quarantine[PB_FILES_PATH_BYTES];
    int64_t silent_ms;
    int64_t jobs, inputs, failed; /* jobs that wait or ran; inputs in work; inputs in quarantine */
};

static void report(struct forget *forget, enum pb_store_grade grade, const char *name,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
static void report(struct forget *forget, enum pb_store_grade grade, const char *name,
                   const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    forget->to_mend += grade == PB_STORE_MEND;
    forget->options->visit(forget->options->user, &(struct pb_store_point){name, grade, text});
}

/* Runs a statement with the name of the node and n numbers, and reads its first row. Returns the
 * statement, which the caller finalizes; or NULL and *err. */
static struct pb_sql_statement *run(struct forget *forget, const char *text, const int64_t *numbers,
                                    int n, struct pb_err *err, bool *out_has_row)
{
    struct pb_sql_statement *s = pb_sql_prepare(forget->db, text, false);
    pb_sql_set_text(s, 1, forget->node);
    for (int i = 0; i < n; i++)
        pb_sql_set_int(s, 2 + i, numbers[i]);
    const enum pb_sql_result result = s != NULL ? pb_sql_step(s) : PB_SQL_FAILED;
    *out_has_row = result == PB_SQL_ROW;
    if (result != PB_SQL_FAILED)
        return s;
    (void)pb_fail(err, PB_E_SERVICE_STATE, "%s", pb_sql_message(forget->db));
    pb_sql_finalize(s);
    return NULL;
}

/* Returns the number of changed rows, or a negative errno. */
static int64_t change(struct forget *forget, const char *text, const int64_t *numbers, int n,
                      struct pb_err *err)
{
    bool has_row;
    struct pb_sql_statement *s = run(forget, text, numbers, n, err, &has_row);
    const int64_t changed = s != NULL ? pb_sql_changes(forget->db) : pb_code_errno(err->code);
    pb_sql_finalize(s);
    return changed;
}

/* Reads the row of the node and locks it; refuses a node that reports. */
static int find(struct forget *forget, struct pb_err *err)
{
    bool has_row, reports = false;
    struct pb_sql_statement *s =
        run(forget,
            "SELECT work, archive, quarantine, pb_now_ms() - seen_ms, CASE WHEN session <> 0 AND"
            " seen_ms + lease_ms > pb_now_ms() THEN 1 ELSE 0 END FROM nodes WHERE node = ?1"
            " FOR UPDATE",
            NULL, 0, err, &has_row);
    if (s == NULL)
        return pb_code_errno(err->code);
    if (has_row) {
        pb_sql_read_text(s, 0, forget->work, sizeof forget->work);
        pb_sql_read_text(s, 1, forget->archive, sizeof forget->archive);
        pb_sql_read_text(s, 2, forget->quarantine, sizeof forget->quarantine);
        forget->silent_ms = pb_sql_int(s, 3);
        reports = pb_sql_int(s, 4) != 0;
    }
    pb_sql_finalize(s);
    if (!has_row)
        return pb_fail(err, PB_E_JOB_STATE, "there is no node %.64s; 'pushbroom status' lists them",
                       forget->node);
    return reports ? pb_fail(err, PB_E_JOB_STATE,
                             "node %.64s reports: stop it first; if it is dead, wait until its "
                             "lease is over",
                             forget->node)
                   : 0;
}

/* Batch of jobs with numbers above `first`, ascending. */
struct batch {
    int64_t first, last; /* number before the first job; number of the last job */
    int64_t n, n_tied;   /* jobs; jobs of the node that are bound to its configuration */
};

/* Reads the next batch and adds its jobs to the counts. */
static int count(struct forget *forget, struct batch *batch, struct pb_err *err)
{
    bool has_row;
    struct pb_sql_statement *s =
        run(forget,
            "SELECT coalesce(max(j.seq), ?2), count(j.seq),"
            " count(*) FILTER (WHERE j.status < 2 AND j.node = n.node AND NOT (" UNTIED ")),"
            " count(*) FILTER (WHERE j.status < 2 AND j.node = n.node),"
            " count(*) FILTER (WHERE j.is_own AND starts_with(j.input, n.work || '/') AND NOT"
            " starts_with(j.input, n.archive || '/')),"
            " count(*) FILTER (WHERE j.is_own AND starts_with(j.input, n.quarantine || '/'))"
            " FROM nodes n LEFT JOIN (SELECT seq, status, node, input, needs, needs_gpu,"
            " status > 1 AND owned = 1 AND archive = '' AS is_own FROM jobs WHERE seq > ?2"
            " ORDER BY seq LIMIT " BATCH ") AS j ON true WHERE n.node = ?1",
            &batch->first, 1, err, &has_row);
    if (s == NULL)
        return pb_code_errno(err->code);
    batch->last = pb_sql_int(s, 0);
    batch->n = pb_sql_int(s, 1);
    batch->n_tied = pb_sql_int(s, 2);
    forget->jobs += pb_sql_int(s, 3);
    forget->inputs += pb_sql_int(s, 4);
    forget->failed += pb_sql_int(s, 5);
    pb_sql_finalize(s);
    return 0;
}

/* The needs of its jobs are those of its configuration, which cannot be changed any more. */
static int untie(struct forget *forget, struct batch *batch, struct pb_err *err)
{
    int rc = find(forget, err);
    rc = rc ? rc : count(forget, batch, err);
    if (rc != 0 || batch->n_tied == 0)
        return rc;
    const int64_t n =
        change(forget,
               "UPDATE jobs SET needs = '', needs_gpu = 0 WHERE seq IN (SELECT seq FROM jobs"
               " WHERE seq > ?2 AND seq <= ?3 AND status < 2 AND node = ?1 AND NOT (" UNTIED ")"
               " ORDER BY seq FOR UPDATE SKIP LOCKED)",
               (const int64_t[]){batch->first, batch->last}, 2, err);
    batch->n_tied -= n > 0 ? n : 0;
    return n < 0 ? (int)n : 0;
}

static int remove_node(struct forget *forget, struct pb_err *err)
{
    static const char *const changes[] = {"DELETE FROM requests WHERE kind <> 0 AND node = ?1",
                                          "DELETE FROM nodes WHERE node = ?1"};
    int64_t rc = find(forget, err);
    for (size_t i = 0; rc >= 0 && i < sizeof changes / sizeof changes[0]; i++)
        rc = change(forget, changes[i], NULL, 0, err);
    return rc < 0 ? (int)rc : 0;
}

/* Runs a transaction for the next batch; NULL: the last transaction, which removes the node. */
static int transact(struct forget *forget, struct batch *batch, struct pb_err *err)
{
    int rc = -EIO;
    if (pb_sql_begin(forget->db))
        rc = batch != NULL ? untie(forget, batch, err) : remove_node(forget, err);
    if (rc == 0 && pb_sql_commit(forget->db))
        return 0;
    if (rc == 0 || err->code == PB_OK)
        rc = pb_fail(err, PB_E_SERVICE_STATE, "%s", pb_sql_message(forget->db));
    pb_sql_rollback(forget->db);
    return rc;
}

/* Walks over all jobs. Returns 1 if jobs of the node are still bound, otherwise 0 or a negative
 * errno. */
static int walk(struct forget *forget, struct pb_err *err)
{
    struct batch batch = {.n = 1};
    bool is_tied = false;
    int64_t seen = 0;
    forget->jobs = forget->inputs = forget->failed = 0;
    while (batch.n > 0) {
        const int rc = transact(forget, &batch, err);
        if (rc != 0)
            return rc;
        seen += batch.n;
        is_tied = is_tied || batch.n_tied > 0;
        batch.first = batch.last;
        if (batch.n > 0 && forget->options->progress != NULL)
            forget->options->progress(forget->options->user, seen);
    }
    return is_tied;
}

/* Returns 1 if the store has a job of that id, 0, or negative. */
static int has_job(struct forget *forget, const char *id)
{
    bool has_row;
    struct pb_err err = {0};
    struct forget of = *forget;
    of.node = id;
    struct pb_sql_statement *s =
        run(&of, "SELECT 1 FROM jobs WHERE id = ?1", NULL, 0, &err, &has_row);
    pb_sql_finalize(s);
    return s != NULL ? has_row : -1;
}

/* Reports claims: directories of work/ that are named by an id of which there is no job. */
static void report_claims(struct forget *forget)
{
    int n = 0;
    char first[PB_JOB_ID_BYTES] = "";
    DIR *dir = opendir(forget->work);
    if (dir == NULL) {
        report(forget, PB_STORE_MEND, "claims",
               "%.400s cannot be read here (%s): look in it on a machine that has it; the files of "
               "folders there that are named by no job belong into an inbox",
               forget->work, strerror(errno));
        return;
    }
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (!pb_job_is_id(e->d_name) || has_job(forget, e->d_name) != 0)
            continue;
        if (n++ == 0)
            (void)snprintf(first, sizeof first, "%.*s", PB_JOB_ID_BYTES - 1, e->d_name);
    }
    (void)closedir(dir);
    if (n == 0)
        report(forget, PB_STORE_FINE, "claims", "no file in %.400s is without a job", forget->work);
    else
        report(forget, PB_STORE_MEND, "claims",
               "%d in %.400s have no job: move the files in %s%s into an inbox", n, forget->work,
               first, n == 1 ? "" : " and others");
}

static void report_all(struct forget *forget)
{
    report(forget, PB_STORE_FINE, "node",
           "%.64s is forgotten; it reported %lld s ago last. If it starts again, it joins as a new "
           "node",
           forget->node, (long long)(forget->silent_ms / 1000));
    report(forget, PB_STORE_FINE, "jobs",
           "%lld that wait or ran there: nodes that see their inputs run them, with their own text "
           "of the pipeline; the inputs stay in %.400s",
           (long long)forget->jobs, forget->work);
    report(forget, forget->inputs > 0 ? PB_STORE_MEND : PB_STORE_FINE, "inputs",
           forget->inputs > 0 ? "%lld of finished jobs are in %.400s: archive or delete them"
                              : "%lld of finished jobs are in %.400s",
           (long long)forget->inputs, forget->work);
    report(forget, forget->failed > 0 ? PB_STORE_MEND : PB_STORE_FINE, "quarantine",
           forget->failed > 0 ? "%lld inputs in %.400s: retry their jobs on a node that sees the "
                                "directory, or delete the files"
                              : "%lld inputs in %.400s",
           (long long)forget->failed, forget->quarantine);
    report_claims(forget);
}

int pb_store_forget(const char *conninfo, const char *node,
                    const struct pb_store_forgetting *options, struct pb_err *err)
{
    const struct pb_postgres_options place = {.conninfo = conninfo, .program = "pushbroom store"};
    struct forget forget = {.node = node, .options = options};
    int rc = pb_postgres_open(&place, err, &forget.db);
    if (rc < 0)
        return rc;
    while ((rc = walk(&forget, err)) > 0)
        ;
    rc = rc ? rc : transact(&forget, NULL, err);
    if (rc == 0)
        report_all(&forget);
    pb_sql_close(forget.db);
    return rc < 0 ? rc : forget.to_mend;
}
