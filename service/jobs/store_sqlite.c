/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The file of the job store. WAL and synchronous=FULL: a commit is on the disk when it returns, and
 * a reader sees it only then. A file that is not a database, fails SQLite's quick check or has
 * other tables, in two successive attempts to open it, is renamed to jobs.db.damaged-<time>, with
 * its -wal, and a new one is created. After an error of the disk, a lock or a permission the state
 * of the file is unknown: it stays. A store of an older service that cannot be upgraded has jobs:
 * it stays, too, unchanged. Before an upgrade the store is copied to jobs.db.schema<N>, the way
 * back, which is on the disk before the upgrade. The header (application_id) has the version of the
 * program that wrote it last, for the message of an older one, which refuses the file.
 *
 * The write-ahead log is moved into the database by a connection of its own, so that no change
 * waits for that; only a log that grew over LOG_PAGES_MAX (without a checkpoint) is moved by the
 * thread that commits. */
#include "service/jobs/store_sqlite.h"

#include "pipeline/io/path.h"
#include "config/base/clock.h"
#include "service/base/files.h"
#include "service/jobs/sql_engine.h"
#include "service/jobs/sql_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_PAGES     1000
#define LOG_PAGES_MAX 16000

static bool execute(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Reads the first column of the first row as text, "" if there is no row. Returns false on
 * failure. */
static bool query_text(sqlite3 *db, const char *sql, char *out, size_t bytes)
{
    sqlite3_stmt *statement = NULL;
    out[0] = '\0';
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL)
        (void)snprintf(out, bytes, "%s", (const char *)sqlite3_column_text(statement, 0));
    /* The database still has the error of the statement after this call. */
    return sqlite3_finalize(statement) == SQLITE_OK && (rc == SQLITE_ROW || rc == SQLITE_DONE);
}

/* Classifies an error: 1 = the file is damaged, or not a job store; -EIO = unknown (permission,
 * disk, lock): the file must stay. */
static int judge(sqlite3 *db, struct pb_err *err)
{
    int error = sqlite3_errcode(db);
    /* SQLITE_ERROR: it has other tables or columns than the job store. */
    if (error == SQLITE_CORRUPT || error == SQLITE_NOTADB || error == SQLITE_ERROR)
        return 1;
    return pb_fail(err, PB_E_SERVICE_STATE, "job store: %s", sqlite3_errmsg(db));
}

/* Runs the steps from a version to the current one, in a transaction that remains open on failure.
 */
static bool run_steps(sqlite3 *db, int version)
{
    bool ok = pb_job_schema_prepare(db) && execute(db, "BEGIN IMMEDIATE");
    for (; ok && version < PB_JOB_SCHEMA_VERSION; version++)
        ok = execute(db, pb_job_schema[version]);
    return ok && execute(db, "COMMIT");
}

/* Name of the copy of the store with that schema. */
static bool copy_name(sqlite3 *db, int version, const char *suffix, char out[PB_FILES_PATH_BYTES])
{
    return snprintf(out, PB_FILES_PATH_BYTES, "%s.schema%d%s", sqlite3_db_filename(db, "main"),
                    version, suffix) < PB_FILES_PATH_BYTES;
}

/* Copies the database into a file, which must not exist. Returns 0 or a negative errno. */
static int copy_into(sqlite3 *db, const char *path)
{
    /* SQLite takes an existing file if it is empty: it is private from the beginning. */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", path);
    int rc = sql == NULL ? -ENOMEM : execute(db, sql) ? 0 : -EIO;
    if (rc == -EIO && sqlite3_errcode(db) == SQLITE_FULL)
        rc = -ENOSPC;
    if (rc == 0 && fsync(fd) != 0)
        rc = -errno;
    sqlite3_free(sql);
    (void)close(fd);
    return rc;
}

/* Returns true if the file was written by this user and has no other name. */
static bool is_own(const char *path, struct stat *out_st)
{
    return lstat(path, out_st) == 0 && S_ISREG(out_st->st_mode) && out_st->st_nlink == 1 &&
           out_st->st_uid == geteuid();
}

static bool is_older(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec < b->st_mtim.tv_sec ||
           (a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec < b->st_mtim.tv_nsec);
}

/* Returns true if the store has not changed since the copy of an earlier try. */
static bool has_new_copy(sqlite3 *db, const char *copy)
{
    char log[PB_FILES_PATH_BYTES + 8];
    struct stat st, of_store, of_log;
    (void)snprintf(log, sizeof log, "%s-wal", sqlite3_db_filename(db, "main"));
    if (!is_own(copy, &st) || st.st_size == 0 ||
        stat(sqlite3_db_filename(db, "main"), &of_store) != 0 || is_older(&st, &of_store))
        return false;
    /* Opening the store creates an empty log. */
    return lstat(log, &of_log) == 0 ? of_log.st_size == 0 || !is_older(&st, &of_log)
                                    : errno == ENOENT;
}

/* Makes the copy under a temporary name. Returns 0 or a negative errno. */
static int make_copy(sqlite3 *db, const char *copy, const char *temporary)
{
    char directory[PATH_MAX];
    struct stat st;
    if (is_own(temporary, &st)) /* a service was killed while it copied */
        (void)unlink(temporary);
    int rc = copy_into(db, temporary);
    if (rc == -EEXIST)
        return rc;
    if (rc == 0 && rename(temporary, copy) != 0)
        rc = -errno;
    if (rc != 0) {
        (void)unlink(temporary);
        return rc;
    }
    /* The upgrade must not reach the disk before the name of the copy does. */
    pb_path_parent(copy, directory);
    return pb_path_sync(directory);
}

/* Copies the store before its upgrade, because an older program cannot read it afterwards. The copy
 * of an earlier try is kept: upgrades are tried again, and fail on a full disk. */
static int keep_copy(sqlite3 *db, int version, const char *copy, struct pb_err *err)
{
    char temporary[PB_FILES_PATH_BYTES];
    /* Otherwise closing the store after a failure would do it, and make the copy older. */
    (void)execute(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    if (has_new_copy(db, copy))
        return 0;
    int rc =
        copy_name(db, version, ".part", temporary) ? make_copy(db, copy, temporary) : -ENAMETOOLONG;
    return rc == 0 ? 0
                   : pb_fail(err, PB_E_SERVICE_STATE,
                             "the job store %.200s cannot be copied to %s before its upgrade from "
                             "schema %d to %d: %s; the store is unchanged. %s",
                             sqlite3_db_filename(db, "main"), strrchr(copy, '/') + 1, version,
                             PB_JOB_SCHEMA_VERSION, strerror(-rc),
                             rc == -EEXIST   ? "Move the file away that has this name and .part"
                             : rc == -ENOSPC ? "Make room for the copy next to it"
                                             : "Correct the cause");
}

/* Upgrades a database from a version (0 = an empty file) to the current one. The file of another
 * version is a job store, which is never judged as damaged because a step fails. */
static int upgrade(sqlite3 *db, int version, struct pb_err *err)
{
    char copy[PB_FILES_PATH_BYTES];
    if (version < 0 || version >= PB_JOB_SCHEMA_VERSION)
        return 0;
    if (version > 0 && !copy_name(db, version, "", copy))
        return pb_fail(err, PB_E_SERVICE_STATE, "the path of the job store is too long");
    if (version > 0 && keep_copy(db, version, copy, err) != 0)
        return pb_code_errno(err->code);
    if (run_steps(db, version))
        return 0;
    if (version == 0)
        return judge(db, err);
    const int rc = pb_fail(
        err, PB_E_SERVICE_STATE,
        "the job store %.200s cannot be upgraded from schema %d to %d: %.120s; the store "
        "is unchanged, %s is its copy. %s, or move the store away to begin without its jobs",
        sqlite3_db_filename(db, "main"), version, PB_JOB_SCHEMA_VERSION, sqlite3_errmsg(db),
        strrchr(copy, '/') + 1,
        sqlite3_errcode(db) == SQLITE_FULL
            ? "Make room for the upgrade, for which the copy leaves too little"
            : "Correct the cause");
    (void)execute(db, "ROLLBACK");
    return rc;
}

/* Version of this program as a number: 0x000200 is 0.2.0. */
static int own_version(void)
{
    int part[3] = {0};
    (void)sscanf(PB_VERSION, "%d.%d.%d", &part[0], &part[1], &part[2]);
    return (part[0] & 0x7fff) << 16 | (part[1] & 0xff) << 8 | (part[2] & 0xff);
}

/* Records the version of this program in the file. */
static bool sign(sqlite3 *db)
{
    char text[64];
    if (!query_text(db, "PRAGMA application_id", text, sizeof text))
        return false;
    if (atoi(text) == own_version())
        return true;
    (void)snprintf(text, sizeof text, "PRAGMA application_id = %d", own_version());
    return execute(db, text);
}

static int refuse_newer(sqlite3 *db, int schema, struct pb_err *err)
{
    char text[64], writer[64] = "", copy[PB_FILES_PATH_BYTES];
    const int version = query_text(db, "PRAGMA application_id", text, sizeof text) ? atoi(text) : 0;
    if (version > 0)
        (void)snprintf(writer, sizeof writer, " %d.%d.%d", version >> 16, version >> 8 & 0xff,
                       version & 0xff);
    const char *path = sqlite3_db_filename(db, "main");
    const bool has_copy = copy_name(db, PB_JOB_SCHEMA_VERSION, "", copy) && access(copy, F_OK) == 0;
    return pb_fail(
        err, PB_E_SERVICE_STATE,
        "the job store %.200s was written by a newer pushbroomd%s (schema %d; this is "
        "%s, which knows %d): run that one again%s; or stop the service and move jobs.db "
        "away with its -wal and -shm%s%s",
        path, writer, schema, PB_VERSION, PB_JOB_SCHEMA_VERSION,
        has_copy ? "" : ", or restore a backup of that directory from before the upgrade",
        has_copy ? ", and rename the copy from before the upgrade to jobs.db: "
                 : ", to begin without its jobs",
        has_copy ? strrchr(copy, '/') + 1 : "");
}

/* Returns 0 for a job store, creating the schema in an empty one; otherwise the result of judge. */
static int check_database(sqlite3 *db, struct pb_err *err)
{
    char text[64];
    if (!execute(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;") ||
        !query_text(db, "PRAGMA quick_check(1)", text, sizeof text))
        return judge(db, err);
    if (strcmp(text, "ok") != 0)
        return 1;
    if (!query_text(db, "PRAGMA user_version", text, sizeof text))
        return judge(db, err);
    if (atoi(text) > PB_JOB_SCHEMA_VERSION)
        return refuse_newer(db, atoi(text), err);
    int rc = upgrade(db, atoi(text), err);
    if (rc == 0 && (!execute(db, "SELECT " PB_JOB_COLUMNS " FROM jobs LIMIT 1") || !sign(db)))
        rc = judge(db, err);
    return rc;
}

/* Restricts the file to the service's user, because jobs contain names of inputs and users. SQLite
 * gives -wal and -shm the mode of the file. Done before SQLite opens the file, because closing any
 * descriptor of it ends SQLite's locks. */
static int make_private(const char *path, struct pb_err *err)
{
    static const char *const suffixes[] = {"-wal", "-shm"};
    char beside[PB_FILES_PATH_BYTES + 8];
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat st;
    int rc = fd < 0 || fstat(fd, &st) != 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
    if (rc == 0 && (st.st_mode & 077) != 0 && fchmod(fd, 0600) != 0)
        rc = -errno;
    if (fd >= 0)
        (void)close(fd);
    for (size_t i = 0; rc == 0 && i < sizeof suffixes / sizeof suffixes[0]; i++) {
        (void)snprintf(beside, sizeof beside, "%s%s", path, suffixes[i]);
        if (lstat(beside, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077) != 0)
            (void)chmod(beside, 0600);
    }
    return rc == 0 ? 0
                   : pb_fail(err, PB_E_SERVICE_STATE, "cannot open the job store %s: %s", path,
                             strerror(-rc));
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

static int on_commit(void *user, sqlite3 *db, const char *name, int pages)
{
    struct pb_job_store *store = user;
    atomic_store(&store->log_pages, pages);
    if (pages >= LOG_PAGES_MAX)
        (void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

/* Gives an open database to its engine. */
static int give(sqlite3 *db, struct pb_err *err, struct pb_sql **out)
{
    *out = pb_sql_sqlite(db);
    return *out != NULL ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory for the job store");
}

static int open_store(struct pb_job_store *store, struct pb_err *err, char out_moved[4096],
                      struct pb_sql **out)
{
    char directory[PATH_MAX];
    sqlite3 *db = NULL;
    int rc = make_private(store->place, err);
    rc = rc ? rc : open_database(store->place, err, &db);
    if (rc > 0) /* damage must be found twice, because a disk may have failed once */
        rc = open_database(store->place, err, &db);
    if (rc > 0 && move_aside(store->place, out_moved)) {
        rc = make_private(store->place, err);
        rc = rc ? rc : open_database(store->place, err, &db);
    }
    if (rc > 0)
        return pb_fail(err, PB_E_SERVICE_STATE,
                       "the job store %s is damaged and cannot be moved aside: %s", store->place,
                       strerror(errno));
    if (rc != 0)
        return rc;
    (void)sqlite3_wal_hook(db, on_commit, store);
    pb_path_parent(store->place, directory);
    (void)pb_path_sync(directory);
    return give(db, err, out);
}

static int open_reader(struct pb_job_store *store, struct pb_err *err, struct pb_sql **out)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(store->place, &db, flags, NULL);
    if (rc != SQLITE_OK || !execute(db, "PRAGMA query_only = ON")) {
        rc = pb_fail(err, PB_E_SERVICE_STATE, "cannot read the job store %s: %s", store->place,
                     sqlite3_errmsg(db));
        (void)sqlite3_close(db);
        return rc;
    }
    (void)sqlite3_busy_timeout(db, 50);
    return give(db, err, out);
}

static void shut(struct pb_job_store *store)
{
    (void)sqlite3_close(store->checkpointer);
    store->checkpointer = NULL;
}

const struct pb_store_kind pb_store_sqlite = {
    .open = open_store, .open_reader = open_reader, .shut = shut};

/* --- the write-ahead log --- */

/* A log that cannot be reset, because it is always in use, is tried again after it has grown by
 * the same amount. */
bool pb_job_store_log_is_long(const struct pb_job_store *store)
{
    int pages = atomic_load(&store->log_pages), last = atomic_load(&store->moved_pages);
    return pages >= LOG_PAGES && (pages < last || pages - last >= LOG_PAGES);
}

int pb_job_store_checkpoint(struct pb_job_store *store, struct pb_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, rc = SQLITE_OK;
    atomic_store(&store->moved_pages, atomic_load(&store->log_pages));
    if (store->checkpointer == NULL)
        rc = sqlite3_open_v2(store->place, &store->checkpointer, flags, NULL);
    /* A connection has the log only after its first read. */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(store->checkpointer, "PRAGMA schema_version", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_wal_checkpoint_v2(store->checkpointer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL,
                                       NULL);
    if (rc == SQLITE_OK)
        return 0;
    rc = pb_fail(err, PB_E_SERVICE_STATE, "job store: checkpoint: %s", sqlite3_errstr(rc));
    (void)sqlite3_close(store->checkpointer);
    store->checkpointer = NULL;
    return rc;
}
