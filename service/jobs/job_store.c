/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One table, one row a job. WAL and synchronous=FULL: a commit is on the disk when it returns, and
 * a reader sees it only then. A file that is no database, fails SQLite's quick check or has other
 * tables, and does so when it is opened a second time as well, is renamed to
 * jobs.db.damaged-<time>, with its -wal, and a fresh one is started. After an error of the disk, a
 * lock or a permission the state of the file is not known: it stays. */
#include "service/jobs/job_store.h"

#include "pipeline/io/path.h"
#include "config/base/clock.h"
#include "service/base/files.h"
#include "service/jobs/job_store_sql.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 2: device_why; 3: uid, identity, counts; 4: the journal; 5: kept; 6: priority;
 * 7: folder; 8: delivered; 9: companion; 10: contents;
 * 11: their checksums have a kind; 12: set_parts */
#define SCHEMA_VERSION 12

#define ARCHIVED "(NEW.status = 2 OR (NEW.status = 4 AND NEW.error_code = 'input.duplicate'))"

/* Version 1, and what each later version adds: a new file takes all the steps of an old one. */
static const char *const schema[SCHEMA_VERSION] = {
    "CREATE TABLE jobs (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    " name TEXT NOT NULL, created_ms INTEGER NOT NULL, status INTEGER NOT NULL,"
    " owned INTEGER NOT NULL, scene TEXT NOT NULL, pipeline TEXT NOT NULL, input TEXT,"
    " attempts INTEGER NOT NULL, started_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
    " finished_ms INTEGER NOT NULL, progress INTEGER NOT NULL, stage TEXT NOT NULL,"
    " device TEXT NOT NULL, tiles_done INTEGER NOT NULL, tiles_total INTEGER NOT NULL,"
    " bytes_read INTEGER NOT NULL, bytes_written INTEGER NOT NULL, elapsed_ms INTEGER NOT NULL,"
    " directory TEXT, products TEXT, report TEXT, error_code TEXT NOT NULL,"
    " error_message TEXT NOT NULL, error_hint TEXT NOT NULL);"
    "CREATE INDEX jobs_by_status ON jobs (status, seq);"
    "PRAGMA user_version = 1;",

    "ALTER TABLE jobs ADD COLUMN device_why TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version = 2;",

    "ALTER TABLE jobs ADD COLUMN uid INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE jobs ADD COLUMN identity TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX jobs_by_tail ON jobs (" PB_JOB_TAIL ");"
    "CREATE INDEX jobs_finished ON jobs (seq) WHERE status > 1;"
    "CREATE TABLE job_counts (status INTEGER PRIMARY KEY, n INTEGER NOT NULL);"
    "INSERT INTO job_counts VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0);"
    "UPDATE job_counts SET n = (SELECT count(*) FROM jobs WHERE jobs.status = job_counts.status);"
    "CREATE TRIGGER jobs_inserted AFTER INSERT ON jobs BEGIN"
    " UPDATE job_counts SET n = n + 1 WHERE status = NEW.status; END;"
    "CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs BEGIN"
    " UPDATE job_counts SET n = n - 1 WHERE status = OLD.status; END;"
    "CREATE TRIGGER jobs_moved AFTER UPDATE OF status ON jobs WHEN OLD.status <> NEW.status BEGIN"
    " UPDATE job_counts SET n = n - 1 WHERE status = OLD.status;"
    " UPDATE job_counts SET n = n + 1 WHERE status = NEW.status; END;"
    "PRAGMA user_version = 3;",

    /* Numbers of events begin at the milliseconds since 1970: above those of an older store, as
     * there are never more than a thousand events a second for long. */
    "CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER NOT NULL,"
    " kind TEXT NOT NULL, job TEXT NOT NULL, pipeline TEXT NOT NULL, data TEXT NOT NULL);"
    "INSERT INTO sqlite_sequence (name, seq) VALUES"
    " ('events', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));"
    "CREATE TABLE subscribers (name TEXT PRIMARY KEY, seq INTEGER NOT NULL, events TEXT NOT NULL,"
    " pipelines TEXT NOT NULL, expire_ms INTEGER NOT NULL, delivered INTEGER NOT NULL DEFAULT 0,"
    " given_up INTEGER NOT NULL DEFAULT 0, expired INTEGER NOT NULL DEFAULT 0);"
    "PRAGMA user_version = 4;",

    /* Of older jobs it is not known when their inputs were moved: some time after the end. */
    "CREATE TABLE kept (path TEXT PRIMARY KEY, since_ms INTEGER NOT NULL);"
    "CREATE INDEX kept_by_age ON kept (since_ms);"
    "INSERT OR IGNORE INTO kept SELECT input, finished_ms FROM jobs"
    " WHERE owned = 1 AND status = 2 AND input IS NOT NULL;"
    "CREATE TRIGGER jobs_kept AFTER UPDATE OF input ON jobs"
    " WHEN NEW.owned = 1 AND NEW.status = 2 AND NEW.input IS NOT NULL"
    " AND (NEW.input IS NOT OLD.input OR OLD.status <> 2) BEGIN"
    " INSERT OR REPLACE INTO kept VALUES (NEW.input,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "PRAGMA user_version = 5;",

    /* rank: -priority, so that the index has the order of the queue. */
    "ALTER TABLE jobs ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX jobs_waiting ON jobs (rank, seq) WHERE status = 0;"
    "PRAGMA user_version = 6;",

    "ALTER TABLE jobs ADD COLUMN folder TEXT;"
    "PRAGMA user_version = 7;",

    "ALTER TABLE jobs ADD COLUMN delivered TEXT;"
    "PRAGMA user_version = 8;",

    "ALTER TABLE jobs ADD COLUMN companion TEXT;"
    "ALTER TABLE jobs ADD COLUMN has_checksum INTEGER NOT NULL DEFAULT 0;"
    "CREATE TRIGGER companions_kept AFTER UPDATE OF companion ON jobs"
    " WHEN NEW.owned = 1 AND NEW.status = 2 AND NEW.companion IS NOT NULL"
    " AND (NEW.companion IS NOT OLD.companion OR OLD.status <> 2) BEGIN"
    " INSERT OR REPLACE INTO kept VALUES (NEW.companion,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "PRAGMA user_version = 9;",

    /* Inputs of skipped duplicates are archived like those of successful jobs. */
    "CREATE TABLE contents (pipeline TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " sha256 TEXT NOT NULL, job TEXT NOT NULL, directory TEXT NOT NULL, time_ms INTEGER NOT NULL,"
    " PRIMARY KEY (pipeline, bytes, sha256));"
    "CREATE INDEX contents_by_age ON contents (time_ms);"
    "ALTER TABLE jobs ADD COLUMN anyway INTEGER NOT NULL DEFAULT 0;"
    "DROP TRIGGER jobs_kept;"
    "DROP TRIGGER companions_kept;"
    "CREATE TRIGGER jobs_kept AFTER UPDATE OF input ON jobs"
    " WHEN NEW.owned = 1 AND " ARCHIVED " AND NEW.input IS NOT NULL"
    " AND (NEW.input IS NOT OLD.input OR OLD.status <> NEW.status) BEGIN"
    " INSERT OR REPLACE INTO kept VALUES (NEW.input,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "CREATE TRIGGER companions_kept AFTER UPDATE OF companion ON jobs"
    " WHEN NEW.owned = 1 AND " ARCHIVED " AND NEW.companion IS NOT NULL"
    " AND (NEW.companion IS NOT OLD.companion OR OLD.status <> NEW.status) BEGIN"
    " INSERT OR REPLACE INTO kept VALUES (NEW.companion,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "PRAGMA user_version = 10;",

    "ALTER TABLE contents RENAME COLUMN sha256 TO checksum;"
    "UPDATE contents SET checksum = 'sha256:' || checksum;"
    "PRAGMA user_version = 11;",

    /* Inputs of successful jobs of loose files, where they lie (set_parts.h). */
    "ALTER TABLE jobs ADD COLUMN set_id TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN replaces TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX jobs_of_sets ON jobs (scene) WHERE set_id <> '' AND status < 2;"
    "CREATE TABLE set_parts (job TEXT PRIMARY KEY, set_id TEXT NOT NULL, pipeline TEXT NOT NULL,"
    " folder TEXT NOT NULL, scene TEXT NOT NULL, path TEXT NOT NULL, delivered TEXT,"
    " directory TEXT, time_ms INTEGER NOT NULL);"
    "CREATE INDEX set_parts_by_scene ON set_parts (scene, pipeline, folder, time_ms);"
    "CREATE INDEX set_parts_by_set ON set_parts (set_id, time_ms);"
    "CREATE INDEX set_parts_by_path ON set_parts (path);"
    "CREATE TRIGGER jobs_part AFTER UPDATE OF status, input ON jobs"
    " WHEN NEW.set_id <> '' AND NEW.owned = 1 AND NEW.status = 2 AND NEW.input IS NOT NULL"
    " AND (NEW.input IS NOT OLD.input OR OLD.status <> 2) BEGIN"
    " INSERT OR REPLACE INTO set_parts VALUES (NEW.id, NEW.set_id, NEW.pipeline,"
    " ifnull(NEW.folder, ''), NEW.scene, NEW.input, NEW.delivered, NEW.directory,"
    " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
    "PRAGMA user_version = 12;",
};

static bool execute(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* First column of the first row as text, "" when there is none. False: it could not be read. */
static bool query_text(sqlite3 *db, const char *sql, char *out, size_t bytes)
{
    sqlite3_stmt *statement = NULL;
    out[0] = '\0';
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL)
        (void)snprintf(out, bytes, "%s", (const char *)sqlite3_column_text(statement, 0));
    /* The error of the statement stands in the database after this, too. */
    return sqlite3_finalize(statement) == SQLITE_OK && (rc == SQLITE_ROW || rc == SQLITE_DONE);
}

/* From a version (0 = an empty file) to ours. */
static bool upgrade(sqlite3 *db, int version)
{
    bool ok = true;
    if (version < 0 || version >= SCHEMA_VERSION)
        return true;
    ok = execute(db, "BEGIN IMMEDIATE");
    for (; ok && version < SCHEMA_VERSION; version++)
        ok = execute(db, schema[version]);
    return ok && execute(db, "COMMIT");
}

/* Classifies an error: 1 = the file is damaged, or not a job store; -EIO = not known (permission,
 * disk, lock): it must stay. */
static int judge(sqlite3 *db, struct pb_err *err)
{
    int error = sqlite3_errcode(db);
    /* SQLITE_ERROR: it has other tables or columns than ours. */
    if (error == SQLITE_CORRUPT || error == SQLITE_NOTADB || error == SQLITE_ERROR)
        return 1;
    return pb_fail(err, PB_E_SERVICE_STATE, "job store: %s", sqlite3_errmsg(db));
}

/* 0 = a job store; makes the schema in an empty one; else as judge. */
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
    if (atoi(text) > SCHEMA_VERSION)
        return pb_fail(err, PB_E_SERVICE_STATE,
                       "the job store was written by a newer pushbroomd (schema %s, this one "
                       "knows %d); use that version, or move the file away",
                       text, SCHEMA_VERSION);
    bool ok = upgrade(db, atoi(text)) && execute(db, "SELECT " PB_JOB_COLUMNS " FROM jobs LIMIT 1");
    return ok ? 0 : judge(db, err);
}

/* Jobs name inputs and people: the store is the service's alone. SQLite gives -wal and -shm the
 * mode of the file. Done before SQLite opens it, for closing any descriptor of it ends SQLite's
 * locks. */
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

static struct pb_job_store *allocate(void)
{
    struct pb_job_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    (void)pthread_mutex_init(&store->lock, NULL);
    (void)pthread_cond_init(&store->freed, NULL);
    STAILQ_INIT(&store->changes);
    return store;
}

int pb_job_store_create(const char *directory, struct pb_err *err, struct pb_job_store **out_store)
{
    struct pb_job_store *store = allocate();
    if (store == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    if (pb_files_join(store->path, directory, "jobs.db") != 0) {
        pb_job_store_close(store);
        return pb_fail(err, PB_E_SERVICE_STATE, "the path of the state directory is too long");
    }
    *out_store = store;
    return 0;
}

int pb_job_store_connect(struct pb_job_store *store, struct pb_err *err, char out_moved[4096])
{
    char directory[PB_FILES_PATH_BYTES];
    out_moved[0] = '\0';
    int rc = make_private(store->path, err);
    rc = rc ? rc : open_database(store->path, err, &store->db);
    if (rc > 0) /* damage must show twice: a disk may have failed once */
        rc = open_database(store->path, err, &store->db);
    if (rc > 0 && move_aside(store->path, out_moved)) {
        rc = make_private(store->path, err);
        rc = rc ? rc : open_database(store->path, err, &store->db);
    }
    if (rc > 0)
        return pb_fail(err, PB_E_SERVICE_STATE,
                       "the job store %s is damaged and cannot be moved aside: %s", store->path,
                       strerror(errno));
    (void)memcpy(directory, store->path, sizeof directory);
    *strrchr(directory, '/') = '\0';
    if (rc == 0) {
        pb_job_store_count_pages(store);
        (void)pb_path_sync(directory);
    }
    return rc;
}

int pb_job_store_open(const char *directory, struct pb_err *err, char out_moved[4096],
                      struct pb_job_store **out_store)
{
    struct pb_job_store *store = NULL;
    int rc = pb_job_store_create(directory, err, &store);
    if (rc != 0)
        return rc;
    rc = pb_job_store_connect(store, err, out_moved);
    if (rc == 0)
        *out_store = store;
    else
        pb_job_store_close(store);
    return rc;
}

void pb_job_store_disconnect(struct pb_job_store *store)
{
    for (size_t i = 0; i < sizeof store->statement / sizeof store->statement[0]; i++)
        (void)sqlite3_finalize(store->statement[i]);
    for (size_t i = 0; i < sizeof store->list / sizeof store->list[0]; i++)
        (void)sqlite3_finalize(store->list[i]);
    (void)memset(store->statement, 0, sizeof store->statement);
    (void)memset(store->list, 0, sizeof store->list);
    (void)sqlite3_close(store->checkpointer);
    (void)sqlite3_close(store->db);
    store->db = store->checkpointer = NULL;
}

void pb_job_store_close(struct pb_job_store *store)
{
    if (store == NULL)
        return;
    pb_job_store_disconnect(store);
    (void)pthread_cond_destroy(&store->freed);
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
}

static int connect_reader(struct pb_job_store *store, struct pb_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(store->path, &store->db, flags, NULL);
    if (rc != SQLITE_OK || !execute(store->db, "PRAGMA query_only = ON")) {
        rc = pb_fail(err, PB_E_SERVICE_STATE, "cannot read the job store %s: %s", store->path,
                     sqlite3_errmsg(store->db));
        pb_job_store_disconnect(store);
        return rc;
    }
    (void)sqlite3_busy_timeout(store->db, 50);
    return 0;
}

int pb_job_store_ready(struct pb_job_store *store, struct pb_err *err)
{
    if (store->db != NULL)
        return 0;
    if (store->of != NULL && atomic_load(&store->of->admits))
        return connect_reader(store, err);
    return pb_fail(err, PB_E_SERVICE_STATE,
                   "the job store is not open yet; service.info says why, and it is tried again");
}

int pb_job_store_open_reader(const char *directory, struct pb_err *err,
                             struct pb_job_store **out_store)
{
    struct pb_job_store *store = NULL;
    int rc = pb_job_store_create(directory, err, &store);
    rc = rc ? rc : connect_reader(store, err);
    if (rc == 0)
        *out_store = store;
    else
        pb_job_store_close(store);
    return rc;
}

int pb_job_store_create_reader(const struct pb_job_store *store, struct pb_err *err,
                               struct pb_job_store **out_reader)
{
    struct pb_job_store *reader = allocate();
    if (reader == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    (void)memcpy(reader->path, store->path, sizeof reader->path);
    reader->of = store;
    *out_reader = reader;
    return 0;
}

void pb_job_store_admit_readers(struct pb_job_store *store)
{
    atomic_store(&store->admits, true);
}
