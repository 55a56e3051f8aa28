/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One table, one row a job, statements prepared per call (a job changes a few times in its life;
 * the fsync costs a hundred times more). WAL and synchronous=FULL: a commit is on the disk when it
 * returns. A file that is no database, fails SQLite's quick check or has other tables is renamed to
 * jobs.db.damaged-<time>, with its -wal, and a fresh one is started. */
#include "service/job_store.h"

#include "pipeline/path.h"
#include "service/clock.h"
#include "service/files.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_VERSION 2 /* 2: device_why */

struct pb_job_store {
    sqlite3 *db;
};

static const char schema[] =
    "CREATE TABLE jobs (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    " name TEXT NOT NULL, created_ms INTEGER NOT NULL, status INTEGER NOT NULL,"
    " owned INTEGER NOT NULL, scene TEXT NOT NULL, pipeline TEXT NOT NULL, input TEXT,"
    " attempts INTEGER NOT NULL, started_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
    " finished_ms INTEGER NOT NULL, progress INTEGER NOT NULL, stage TEXT NOT NULL,"
    " device TEXT NOT NULL, tiles_done INTEGER NOT NULL, tiles_total INTEGER NOT NULL,"
    " bytes_read INTEGER NOT NULL, bytes_written INTEGER NOT NULL, elapsed_ms INTEGER NOT NULL,"
    " directory TEXT, products TEXT, report TEXT, error_code TEXT NOT NULL,"
    " error_message TEXT NOT NULL, error_hint TEXT NOT NULL, device_why TEXT NOT NULL DEFAULT '');"
    "CREATE INDEX jobs_by_status ON jobs (status, seq);"
    "PRAGMA user_version = 2;";

static const char schema_1_to_2[] =
    "ALTER TABLE jobs ADD COLUMN device_why TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version = 2;";

enum field_kind { FIELD_INT64, FIELD_INT, FIELD_BOOL, FIELD_STATUS, FIELD_TEXT, FIELD_STRING };

/* Columns and the members they hold, in one order for reading and writing. FIELD_TEXT is a char
 * array, FIELD_STRING a malloc'd string or NULL. The first FIXED of them never change. */
struct field {
    enum field_kind kind;
    size_t offset, bytes;
};
#define FIELD(kind, member)                                                                        \
    {                                                                                              \
        FIELD_##kind, offsetof(struct pb_job, member), sizeof(((struct pb_job *)0)->member)        \
    }
static const struct field fields[] = {
    FIELD(TEXT, id),
    FIELD(TEXT, name),
    FIELD(INT64, created_ms),
    FIELD(STATUS, status),
    FIELD(BOOL, owned),
    FIELD(TEXT, scene),
    FIELD(TEXT, pipeline),
    FIELD(STRING, input),
    FIELD(INT, attempts),
    FIELD(INT64, started_ms),
    FIELD(INT64, updated_ms),
    FIELD(INT64, finished_ms),
    FIELD(INT, progress),
    FIELD(TEXT, stage),
    FIELD(TEXT, device),
    FIELD(INT64, tiles_done),
    FIELD(INT64, tiles_total),
    FIELD(INT64, bytes_read),
    FIELD(INT64, bytes_written),
    FIELD(INT64, elapsed_ms),
    FIELD(STRING, directory),
    FIELD(STRING, products),
    FIELD(STRING, report),
    FIELD(TEXT, error.code),
    FIELD(TEXT, error.message),
    FIELD(TEXT, error.hint),
    FIELD(TEXT, device_why),
};
#define FIXED         3
#define COUNT_SET     ((int)(sizeof fields / sizeof fields[0]) - FIXED)
#define COLUMNS_FIXED "id, name, created_ms, "
#define COLUMNS_SET                                                                                \
    "status, owned, scene, pipeline, input, attempts, started_ms, updated_ms, finished_ms,"        \
    " progress, stage, device, tiles_done, tiles_total, bytes_read, bytes_written, elapsed_ms,"    \
    " directory, products, report, error_code, error_message, error_hint, device_why"
#define COLUMNS_ALL  "seq, " COLUMNS_FIXED COLUMNS_SET
#define COLUMNS_HOLD "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?"

static int db_fail(struct pb_job_store *store, struct pb_err *err, const char *what)
{
    return pb_fail(err, PB_E_SERVICE_STATE, "job store: %s: %s", what, sqlite3_errmsg(store->db));
}

static bool execute(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* First column of the first row; "" on any failure. */
static void query_text(sqlite3 *db, const char *sql, char *out, size_t bytes)
{
    sqlite3_stmt *statement = NULL;
    out[0] = '\0';
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL)
        (void)snprintf(out, bytes, "%s", (const char *)sqlite3_column_text(statement, 0));
    (void)sqlite3_finalize(statement);
}

/* 0 = a store of ours, with the schema made in an empty one; 1 = damaged, or not ours; -EIO = this
 * says nothing about the file (permission, disk, a newer program's schema): it must stay. */
static int check_database(sqlite3 *db, struct pb_err *err)
{
    char text[64];
    bool ok = execute(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;");
    if (ok) {
        query_text(db, "PRAGMA quick_check(1)", text, sizeof text);
        if (text[0] != '\0' && strcmp(text, "ok") != 0)
            return 1;
        query_text(db, "PRAGMA user_version", text, sizeof text);
        if (atoi(text) > SCHEMA_VERSION)
            return pb_fail(err, PB_E_SERVICE_STATE,
                           "the job store was written by a newer pushbroomd (schema %s, this one "
                           "knows %d); use that version, or move the file away",
                           text, SCHEMA_VERSION);
        if (strcmp(text, "0") == 0)
            ok = execute(db, "BEGIN IMMEDIATE") && execute(db, schema) && execute(db, "COMMIT");
        if (strcmp(text, "1") == 0)
            ok = execute(db, "BEGIN IMMEDIATE") && execute(db, schema_1_to_2) &&
                 execute(db, "COMMIT");
        ok = ok && execute(db, "SELECT " COLUMNS_ALL " FROM jobs LIMIT 1");
    }
    int error = sqlite3_errcode(db);
    if (ok)
        return 0;
    /* SQLITE_ERROR: it has other tables or columns than ours. */
    if (error == SQLITE_CORRUPT || error == SQLITE_NOTADB || error == SQLITE_ERROR)
        return 1;
    return pb_fail(err, PB_E_SERVICE_STATE, "job store: %s", sqlite3_errmsg(db));
}

static int open_database(const char *path, struct pb_err *err, sqlite3 **out_db)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(path, &db, flags, NULL);
    if (rc != SQLITE_OK) {
        rc = pb_fail(err, PB_E_SERVICE_STATE, "cannot open the job store %s: %s", path,
                     sqlite3_errstr(rc));
    } else {
        (void)sqlite3_busy_timeout(db, 500);
        rc = check_database(db, err);
    }
    if (rc == 0)
        *out_db = db;
    else
        (void)sqlite3_close(db);
    return rc;
}

static bool move_aside(const char *path, char out_moved[4096])
{
    static const char *const suffixes[] = {"-wal", "-shm"};
    char from[PB_FILES_PATH_BYTES], to[PB_FILES_PATH_BYTES];
    (void)snprintf(to, sizeof to, "%.3900s.damaged-%lld", path, (long long)pb_clock_wall_ms());
    if (rename(path, to) != 0)
        return false;
    (void)memcpy(out_moved, to, sizeof to);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        (void)snprintf(from, sizeof from, "%.3900s%s", path, suffixes[i]);
        (void)snprintf(to, sizeof to, "%.4000s%s", out_moved, suffixes[i]);
        (void)rename(from, to);
    }
    return true;
}

int pb_job_store_open(const char *directory, struct pb_err *err, char out_moved[4096],
                      struct pb_job_store **out_store)
{
    char path[PB_FILES_PATH_BYTES];
    out_moved[0] = '\0';
    if (pb_files_join(path, directory, "jobs.db") != 0)
        return pb_fail(err, PB_E_SERVICE_STATE, "the path of the state directory is too long");
    struct pb_job_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    int rc = open_database(path, err, &store->db);
    if (rc > 0 && move_aside(path, out_moved))
        rc = open_database(path, err, &store->db);
    if (rc != 0) {
        free(store);
        return rc < 0 ? rc
                      : pb_fail(err, PB_E_SERVICE_STATE,
                                "the job store %s is damaged and cannot be moved aside: %s", path,
                                strerror(errno));
    }
    (void)pb_path_sync(directory);
    *out_store = store;
    return 0;
}

void pb_job_store_close(struct pb_job_store *store)
{
    if (store == NULL)
        return;
    (void)sqlite3_close(store->db);
    free(store);
}

static sqlite3_stmt *prepare(struct pb_job_store *store, const char *sql, struct pb_err *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
        (void)db_fail(store, err, "prepare");
    return statement;
}

/* Binds fields first .. last to the parameters from `at` on. Strings are borrowed. */
static void bind_fields(sqlite3_stmt *s, int at, size_t first, const struct pb_job *job)
{
    for (size_t i = first; i < sizeof fields / sizeof fields[0]; i++, at++) {
        const char *member = (const char *)job + fields[i].offset;
        switch (fields[i].kind) {
        case FIELD_INT64:
            (void)sqlite3_bind_int64(s, at, *(const int64_t *)(const void *)member);
            break;
        case FIELD_INT:
            (void)sqlite3_bind_int(s, at, *(const int *)(const void *)member);
            break;
        case FIELD_BOOL:
            (void)sqlite3_bind_int(s, at, *(const bool *)member);
            break;
        case FIELD_STATUS:
            (void)sqlite3_bind_int(s, at, (int)*(const enum pb_job_status *)(const void *)member);
            break;
        case FIELD_TEXT:
            (void)sqlite3_bind_text(s, at, member, -1, SQLITE_STATIC);
            break;
        case FIELD_STRING:
            (void)sqlite3_bind_text(s, at, *(char *const *)(const void *)member, -1, SQLITE_STATIC);
            break;
        }
    }
}

/* COLUMNS_ALL. out_job is initialised here; false = out of memory (and nothing to fini). */
static bool read_row(sqlite3_stmt *s, struct pb_job *job)
{
    bool ok = true;
    pb_job_init(job);
    job->seq = sqlite3_column_int64(s, 0);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        void *member = (char *)job + fields[i].offset;
        int at = (int)i + 1;
        int number = sqlite3_column_int(s, at);
        const char *text = (const char *)sqlite3_column_text(s, at);
        switch (fields[i].kind) {
        case FIELD_INT64:
            *(int64_t *)member = sqlite3_column_int64(s, at);
            break;
        case FIELD_INT:
            *(int *)member = number;
            break;
        case FIELD_BOOL:
            *(bool *)member = number != 0;
            break;
        case FIELD_STATUS:
            *(enum pb_job_status *)member = number >= 0 && number < PB_JOB_STATUS_COUNT
                                                ? (enum pb_job_status)number
                                                : PB_JOB_FAILED;
            break;
        case FIELD_TEXT:
            (void)snprintf(member, fields[i].bytes, "%s", text ? text : "");
            break;
        case FIELD_STRING:
            ok = pb_job_set(member, text) == 0 && ok;
            break;
        }
    }
    if (!ok)
        pb_job_fini(job);
    return ok;
}

int pb_job_store_insert(struct pb_job_store *store, struct pb_job *job, struct pb_err *err)
{
    sqlite3_stmt *s = prepare(
        store, "INSERT INTO jobs (" COLUMNS_FIXED COLUMNS_SET ") VALUES (?,?,?," COLUMNS_HOLD ")",
        err);
    if (s == NULL)
        return -EIO;
    bind_fields(s, 1, 0, job);
    int rc = sqlite3_step(s);
    bool taken = rc == SQLITE_CONSTRAINT;
    if (rc == SQLITE_DONE)
        job->seq = sqlite3_last_insert_rowid(store->db);
    int result = rc == SQLITE_DONE ? 0 : taken ? -EEXIST : db_fail(store, err, "insert");
    (void)sqlite3_finalize(s);
    return result;
}

int pb_job_store_update(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    sqlite3_stmt *s =
        prepare(store, "UPDATE jobs SET (" COLUMNS_SET ") = (" COLUMNS_HOLD ") WHERE id = ?", err);
    if (s == NULL)
        return -EIO;
    bind_fields(s, 1, FIXED, job);
    (void)sqlite3_bind_text(s, COUNT_SET + 1, job->id, -1, SQLITE_STATIC);
    int result = sqlite3_step(s) == SQLITE_DONE ? 0 : db_fail(store, err, "update");
    (void)sqlite3_finalize(s);
    return result;
}

int pb_job_store_find(struct pb_job_store *store, const char *id, struct pb_err *err,
                      struct pb_job *out_job)
{
    if (!pb_job_is_suffix(id))
        return pb_fail(err, PB_E_JOB_UNKNOWN, "'%.60s' is not the name of a job", id);
    sqlite3_stmt *s =
        prepare(store,
                "SELECT " COLUMNS_ALL " FROM jobs WHERE id = ?1 OR substr(id, -length(?1)) = ?1"
                " ORDER BY seq DESC LIMIT 2",
                err);
    if (s == NULL)
        return -EIO;
    struct pb_job job;
    int result;
    (void)sqlite3_bind_text(s, 1, id, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_DONE) {
        result = pb_fail(err, PB_E_JOB_UNKNOWN, "there is no job '%s'", id);
    } else if (rc != SQLITE_ROW) {
        result = db_fail(store, err, "find");
    } else if (!read_row(s, &job)) {
        result = pb_fail(err, PB_E_MEMORY, "out of memory");
    } else if (sqlite3_step(s) == SQLITE_ROW && strcmp(job.id, id) != 0) {
        result = pb_fail(err, PB_E_JOB_UNKNOWN,
                         "several jobs end in '%s'; give more characters of the id", id);
        pb_job_fini(&job);
    } else {
        *out_job = job;
        result = 0;
    }
    (void)sqlite3_finalize(s);
    return result;
}

static int list(struct pb_job_store *store, const char *sql, unsigned mask, int64_t limit,
                int (*visit)(void *user, struct pb_job *job), void *user, struct pb_err *err)
{
    sqlite3_stmt *s = prepare(store, sql, err);
    if (s == NULL)
        return -EIO;
    int result = 0, rc;
    (void)sqlite3_bind_int64(s, 1, (int64_t)mask);
    (void)sqlite3_bind_int64(s, 2, limit);
    while (result == 0 && (rc = sqlite3_step(s)) != SQLITE_DONE) {
        struct pb_job job;
        if (rc != SQLITE_ROW) {
            result = db_fail(store, err, "list");
        } else if (!read_row(s, &job)) {
            result = pb_fail(err, PB_E_MEMORY, "out of memory");
        } else {
            result = visit(user, &job);
            pb_job_fini(&job);
        }
    }
    (void)sqlite3_finalize(s);
    return result;
}

int pb_job_store_list(struct pb_job_store *store, unsigned status_mask, int64_t limit,
                      int (*visit)(void *user, struct pb_job *job), void *user, struct pb_err *err)
{
    return list(store,
                "SELECT " COLUMNS_ALL
                " FROM jobs WHERE ((1 << status) & ?1) != 0 ORDER BY seq DESC LIMIT ?2",
                status_mask, limit, visit, user, err);
}

struct first {
    bool (*may)(void *user, const struct pb_job *job);
    void *user;
    struct pb_job *out;
};

static int keep_first(void *user, struct pb_job *job)
{
    struct first *first = user;
    if (!first->may(first->user, job))
        return 0;
    *first->out = *job;
    memset(job, 0, sizeof *job);
    return 1;
}

int pb_job_store_next(struct pb_job_store *store, bool (*may)(void *user, const struct pb_job *job),
                      void *user, struct pb_err *err, struct pb_job *out_job)
{
    struct first first = {may, user, out_job};
    return list(store,
                "SELECT " COLUMNS_ALL
                " FROM jobs WHERE status = 0 AND ?1 != 0 ORDER BY seq LIMIT ?2",
                PB_JOB_MASK(PB_JOB_ACCEPTED), -1, keep_first, &first, err);
}

int pb_job_store_counts(struct pb_job_store *store, int64_t out_counts[PB_JOB_STATUS_COUNT],
                        struct pb_err *err)
{
    sqlite3_stmt *s = prepare(store, "SELECT status, count(*) FROM jobs GROUP BY status", err);
    if (s == NULL)
        return -EIO;
    memset(out_counts, 0, PB_JOB_STATUS_COUNT * sizeof out_counts[0]);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        int status = sqlite3_column_int(s, 0);
        if (status >= 0 && status < PB_JOB_STATUS_COUNT)
            out_counts[status] = sqlite3_column_int64(s, 1);
    }
    int result = rc == SQLITE_DONE ? 0 : db_fail(store, err, "count");
    (void)sqlite3_finalize(s);
    return result;
}

/* Runs a statement with one integer; returns the number of changed rows. */
static int change(struct pb_job_store *store, const char *sql, int64_t a, struct pb_err *err)
{
    sqlite3_stmt *s = prepare(store, sql, err);
    if (s == NULL)
        return -EIO;
    (void)sqlite3_bind_int64(s, 1, a);
    int result =
        sqlite3_step(s) == SQLITE_DONE ? sqlite3_changes(store->db) : db_fail(store, err, "change");
    (void)sqlite3_finalize(s);
    return result;
}

int pb_job_store_recover(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err)
{
    return change(store,
                  "UPDATE jobs SET status = 0, updated_ms = ?1, started_ms = 0, progress = 0,"
                  " stage = '', device = '', device_why = '', tiles_done = 0, tiles_total = 0 "
                  "WHERE status = 1",
                  wall_ms, err);
}

int pb_job_store_prune(struct pb_job_store *store, int keep, struct pb_err *err)
{
    return change(store,
                  "DELETE FROM jobs WHERE status > 1 AND seq <= (SELECT seq FROM jobs"
                  " WHERE status > 1 ORDER BY seq DESC LIMIT 1 OFFSET ?1)",
                  keep, err);
}
