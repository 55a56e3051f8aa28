/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
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

struct forget {
    struct pb_sql *db;
    const char *node;
    void (*visit)(void *user, const struct pb_store_point *point);
    void *user;
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
    forget->visit(forget->user, &(struct pb_store_point){name, grade, text});
}

/* Runs a statement whose first parameter is the name of the node, and reads its first row. Returns
 * the statement; NULL and *err. */
static struct pb_sql_statement *run(struct forget *forget, const char *text, struct pb_err *err,
                                    bool *out_has_row)
{
    struct pb_sql_statement *s = pb_sql_prepare(forget->db, text, false);
    pb_sql_set_text(s, 1, forget->node);
    const enum pb_sql_result result = s != NULL ? pb_sql_step(s) : PB_SQL_FAILED;
    *out_has_row = result == PB_SQL_ROW;
    if (result != PB_SQL_FAILED)
        return s;
    (void)pb_fail(err, PB_E_SERVICE_STATE, "%s", pb_sql_message(forget->db));
    pb_sql_finalize(s);
    return NULL;
}

static int change(struct forget *forget, const char *text, struct pb_err *err)
{
    bool has_row;
    struct pb_sql_statement *s = run(forget, text, err, &has_row);
    pb_sql_finalize(s);
    return s != NULL ? 0 : pb_code_errno(err->code);
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
            err, &has_row);
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

static int count(struct forget *forget, struct pb_err *err)
{
    bool has_row;
    struct pb_sql_statement *s =
        run(forget,
            "SELECT count(*) FILTER (WHERE j.status < 2 AND j.node = n.node),"
            " count(*) FILTER (WHERE j.status > 1 AND starts_with(j.input, n.work || '/') AND NOT"
            " starts_with(j.input, n.archive || '/')),"
            " count(*) FILTER (WHERE j.status > 1 AND starts_with(j.input, n.quarantine || '/'))"
            " FROM nodes n LEFT JOIN jobs j ON (j.owned = 1 AND j.archive = '') OR j.status < 2"
            " WHERE n.node = ?1",
            err, &has_row);
    if (s == NULL)
        return pb_code_errno(err->code);
    forget->jobs = pb_sql_int(s, 0);
    forget->inputs = pb_sql_int(s, 1);
    forget->failed = pb_sql_int(s, 2);
    pb_sql_finalize(s);
    return 0;
}

/* The needs of its jobs are those of its configuration, which cannot be changed any more. */
static int remove_node(struct forget *forget, struct pb_err *err)
{
    static const char *const changes[] = {
        "UPDATE jobs SET needs = '', needs_gpu = 0 WHERE status < 2 AND node = ?1",
        "DELETE FROM requests WHERE kind <> 0 AND node = ?1", "DELETE FROM nodes WHERE node = ?1"};
    int rc = find(forget, err);
    rc = rc ? rc : count(forget, err);
    for (size_t i = 0; rc == 0 && i < sizeof changes / sizeof changes[0]; i++)
        rc = change(forget, changes[i], err);
    return rc;
}

/* Returns 1 if the store has a job of that id, 0, or negative. */
static int has_job(struct forget *forget, const char *id)
{
    bool has_row;
    struct pb_err err = {0};
    struct forget of = *forget;
    of.node = id;
    struct pb_sql_statement *s = run(&of, "SELECT 1 FROM jobs WHERE id = ?1", &err, &has_row);
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
                    void (*visit)(void *user, const struct pb_store_point *point), void *user,
                    struct pb_err *err)
{
    const struct pb_postgres_options options = {.conninfo = conninfo, .program = "pushbroom store"};
    struct forget forget = {.node = node, .visit = visit, .user = user};
    int rc = pb_postgres_open(&options, err, &forget.db);
    if (rc < 0)
        return rc;
    rc = pb_sql_begin(forget.db) ? remove_node(&forget, err) : -EIO;
    if (rc == 0 && !pb_sql_commit(forget.db))
        rc = -EIO;
    if (rc == -EIO)
        (void)pb_fail(err, PB_E_SERVICE_STATE, "%s", pb_sql_message(forget.db));
    if (rc == 0)
        report_all(&forget);
    else
        pb_sql_rollback(forget.db);
    pb_sql_close(forget.db);
    return rc < 0 ? rc : forget.to_mend;
}
