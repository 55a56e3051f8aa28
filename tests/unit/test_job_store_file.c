/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * States of the file of the store: of an older or a newer service, damaged, on a disk that fails.
 */
#include "job_store_fixture.h"
#include "service/base/log.h"
#include "service/jobs/store_sqlite.h"
#include "service/jobs/kept.h"
#include "run_suite.h"

static void reopen_after(const char *sql)
{
    char path[PB_FILES_PATH_BYTES];
    sqlite3 *db = NULL;
    pb_job_store_close(store);
    ck_assert_int_eq(pb_files_join(path, directory, "jobs.db"), 0);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    open_store();
    ck_assert_str_eq(moved, "");
}

/* Undoes versions 25 to 27. */
#define WITHOUT_NEEDS                                                                              \
    "DROP TABLE gaps; ALTER TABLE jobs DROP COLUMN needs_gpu;"                                     \
    "ALTER TABLE jobs DROP COLUMN error_memory; ALTER TABLE jobs DROP COLUMN needs; ALTER TABLE "  \
    "jobs DROP COLUMN shunned;"
/* Undoes versions 17 to 27. */
#define WITHOUT_MANIFEST                                                                           \
    WITHOUT_NEEDS                                                                                  \
    "DROP VIEW last_event; ALTER TABLE jobs DROP COLUMN bytes;"                                    \
    "ALTER TABLE jobs DROP COLUMN is_long; ALTER TABLE jobs DROP COLUMN node;"                     \
    "DROP INDEX jobs_running; ALTER TABLE jobs DROP COLUMN session;"                               \
    "ALTER TABLE jobs DROP COLUMN epoch;"                                                          \
    "DROP TRIGGER jobs_of_archive; DROP INDEX jobs_by_archive; DROP INDEX jobs_open_scenes;"       \
    "DROP INDEX jobs_finished; CREATE INDEX jobs_finished ON jobs (seq) WHERE status > 1;"         \
    "ALTER TABLE jobs DROP COLUMN archive;"                                                        \
    "DROP TRIGGER jobs_part;"                                                                      \
    "CREATE TRIGGER jobs_part AFTER UPDATE OF status ON jobs BEGIN SELECT 1; END;"                 \
    "ALTER TABLE jobs DROP COLUMN manifest; ALTER TABLE set_parts DROP COLUMN manifest;"           \
    "ALTER TABLE jobs ADD COLUMN delivered TEXT;"                                                  \
    "ALTER TABLE jobs ADD COLUMN has_checksum INTEGER NOT NULL DEFAULT 0;"                         \
    "ALTER TABLE set_parts ADD COLUMN delivered TEXT;"

/* Undoes version 16. */
#define WITHOUT_AGAIN                                                                              \
    WITHOUT_MANIFEST                                                                               \
    "DROP INDEX jobs_again; DROP INDEX jobs_by_set; ALTER TABLE jobs DROP COLUMN again;"           \
    "ALTER TABLE jobs DROP COLUMN bbox; ALTER TABLE jobs DROP COLUMN datetime;"

/* Reads a file of the source tree, malloc'd. */
static char *text_of(const char *name)
{
    char path[PB_FILES_PATH_BYTES];
    char *text = calloc(1, 1 << 20);
    (void)snprintf(path, sizeof path, "%s/%s", PB_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    ck_assert_uint_gt(fread(text, 1, (1 << 20) - 1, file), 0);
    (void)fclose(file);
    return text;
}

/* Runs statements on the closed store. */
static void change_file(const char *sql)
{
    char path[PB_FILES_PATH_BYTES];
    sqlite3 *db = NULL;
    (void)pb_files_join(path, directory, "jobs.db");
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* Replaces the store by the closed one of version 16 that a service wrote. */
static void make_version_16(void)
{
    char path[PB_FILES_PATH_BYTES];
    char *sql = text_of("tests/unit/job_store_16.sql");
    pb_job_store_close(store);
    store = NULL;
    (void)pb_files_join(path, directory, "jobs.db");
    ck_assert_int_eq(unlink(path), 0);
    change_file(sql);
    free(sql);
}

static void open_version_16(void)
{
    make_version_16();
    open_store();
    ck_assert_str_eq(moved, "");
}

static void find(const char *id, struct pb_job *out_job)
{
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, out_job), 0);
}

START_TEST(test_version_16_jobs_keep_their_files)
{
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    struct pb_job job;
    open_version_16();
    find("nkdv", &job);
    ck_assert_uint_eq(job.manifest.n_entries, 2);
    ck_assert_str_eq(job.manifest.root[0], "/srv/pb/inbox");
    ck_assert_str_eq(job.manifest.entry[1].path, "T1_20260612.tif");
    ck_assert_ptr_null(pb_job_companion(&job, path));
    pb_job_fini(&job);
    find("ygps", &job);
    ck_assert_str_eq(job.manifest.entry[0].path, "probe2.tif");
    ck_assert_str_eq(pb_job_companion(&job, path), "/srv/pb/quarantine/probe2.tif.sha256");
    ck_assert(pb_scene_manifest_find(&job.manifest, PB_ROLE_COMPANION)->verifies);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    pb_job_fini(&job);
    reopen_after("");
    find("ygps", &job);
    ck_assert_uint_eq(job.manifest.n_entries, 2);
    ck_assert_str_eq(pb_job_companion(&job, path), "/srv/pb/quarantine/probe2.tif.sha256");
    pb_job_fini(&job);
}
END_TEST

/* The way back to an older program. */
START_TEST(test_upgrade_keeps_a_copy_of_the_store)
{
    char path[PB_FILES_PATH_BYTES], copy[PB_FILES_PATH_BYTES], name[40];
    struct pb_err err = {0};
    struct pb_job_store *other = NULL;
    struct pb_job job;
    struct stat st;
    open_version_16();
    pb_job_store_close(store);
    store = NULL;
    (void)pb_files_join(path, directory, "jobs.db");
    (void)pb_files_join(copy, directory, "jobs.db.schema16");
    ck_assert_int_eq(stat(copy, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(rename(copy, path), 0);
    change_file("SELECT delivered, has_checksum FROM jobs; PRAGMA user_version = 99;");
    (void)snprintf(name, sizeof name, "jobs.db.schema%d", PB_JOB_SCHEMA_VERSION);
    (void)pb_files_join(copy, directory, name);
    (void)close(open(copy, O_WRONLY | O_CREAT, 0600));
    ck_assert_int_lt(
        pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved, &other),
        0);
    ck_assert_msg(strstr(err.msg, "newer pushbroomd (schema 99") && /* version 16 is not signed */
                      strstr(err.msg, "to jobs.db: ") && strstr(err.msg, name),
                  "%s", err.msg);
    change_file("PRAGMA user_version = 16;");
    open_store();
    find("nkdv", &job);
    ck_assert_uint_eq(job.manifest.n_entries, 2);
    pb_job_fini(&job);
}
END_TEST

/* An operator's view uses a column that version 17 removes. */
START_TEST(test_store_that_cannot_be_upgraded_is_kept)
{
    struct pb_err err = {0};
    struct pb_job job;
    make_version_16();
    change_file("CREATE VIEW mine AS SELECT id, delivered FROM jobs;");
    ck_assert_int_lt(
        pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved, &store),
        0);
    ck_assert_str_eq(moved, "");
    ck_assert_int_eq(err.code, PB_E_SERVICE_STATE);
    ck_assert_msg(strstr(err.msg, "cannot be upgraded from schema 16 to 27: error in view mine"),
                  "%s", err.msg);
    change_file("SELECT delivered, has_checksum FROM jobs; DROP VIEW mine;"); /* it is unchanged */
    open_store();
    ck_assert_str_eq(moved, "");
    find("nkdv", &job);
    ck_assert_uint_eq(job.manifest.n_entries, 2);
    pb_job_fini(&job);
}
END_TEST

static int add_part(void *user, const struct pb_set_part *part)
{
    struct pb_scene_manifest manifest;
    char *text = user;
    ck_assert_int_eq(pb_scene_manifest_parse(part->manifest, &manifest), 0);
    for (size_t i = 0; i < manifest.n_entries; i++)
        (void)strcat(strcat(text, manifest.entry[i].path), " ");
    pb_scene_manifest_fini(&manifest);
    return 0;
}

START_TEST(test_version_16_sets_keep_their_files)
{
    char text[256] = "";
    open_version_16();
    ck_assert_int_eq(pb_set_parts_list(store, "20261129-101600-nkdv", add_part, text, NULL), 0);
    ck_assert_str_eq(text, "T1_20260620.tif T1_20260605.tif T1_20260612.tif ");
}
END_TEST

/* The triggers follow a companion by its path. */
START_TEST(test_version_16_companion_is_kept_at_its_new_place)
{
    struct pb_kept kept;
    struct pb_job job;
    open_version_16();
    find("0p6g", &job);
    ck_assert_int_eq(pb_job_set_companion(&job, "/srv/pb/elsewhere/probe1.tif.sha256"), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_kept_find(store, "/srv/pb/elsewhere/probe1.tif.sha256", NULL, &kept), 1);
    ck_assert_str_eq(kept.job, "20261129-101602-0p6g");
    ck_assert_int_eq(pb_kept_find(store, "/srv/pb/work/done/probe1.tif.sha256", NULL, &kept), 0);
}
END_TEST

START_TEST(test_damaged_manifest_is_empty_and_logged)
{
    struct pb_job job;
    char path[] = "/tmp/pb-store-log-XXXXXX", text[4096] = "";
    open_version_16();
    reopen_after("UPDATE jobs SET manifest = '{\"version\":1' WHERE seq = 1;");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)unlink(path);
    (void)dup2(fd, STDERR_FILENO); /* every test runs in a process of its own */
    pb_log_init(PB_LOG_INFO);
    for (int i = 0; i < 2; i++) {
        find("nkdv", &job);
        ck_assert_uint_eq(job.manifest.n_entries, 0);
        ck_assert_str_eq(job.manifest.input, "/srv/pb/work/done/T1_202606");
        pb_job_fini(&job);
    }
    pb_log_flush();
    ck_assert_int_gt(pread(fd, text, sizeof text - 1, 0), 0);
    (void)close(fd);
    const char *said = strstr(text, "nkdv cannot be read");
    ck_assert_msg(said != NULL, "%s", text);
    ck_assert_ptr_null(strstr(said + 20, "cannot be read"));
}
END_TEST

START_TEST(test_version_19_running_job_starts_with_epoch_1)
{
    struct pb_job job;
    insert("20261121-082850-aaaa", PB_JOB_RUNNING);
    reopen_after(WITHOUT_NEEDS
                 "DROP VIEW last_event; ALTER TABLE jobs DROP COLUMN bytes;"
                 "ALTER TABLE jobs DROP COLUMN is_long; ALTER TABLE jobs DROP COLUMN node;"
                 "DROP INDEX jobs_running; ALTER TABLE jobs DROP COLUMN session;"
                 "ALTER TABLE jobs DROP COLUMN epoch; PRAGMA user_version = 19;");
    ck_assert_int_eq(pb_store_reap(store, 5, NULL), 1);
    find("aaaa", &job);
    ck_assert_int_eq(job.epoch, 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 10), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_store_reap(store, 15, NULL), 0); /* it runs in this session */
    pb_job_store_close(store);
    open_store();
    ck_assert_int_eq(pb_store_reap(store, 15, NULL), 1);
    find("aaaa", &job);
    ck_assert_int_eq(job.epoch, 1);
    pb_job_fini(&job);
}
END_TEST

START_TEST(jobs_of_a_store_without_places_get_none)
{
    struct pb_job job;
    insert("20261121-082850-aaaa", PB_JOB_SUCCESSFUL);
    reopen_after(WITHOUT_AGAIN "PRAGMA user_version = 15;");
    ck_assert_int_eq(pb_job_store_find(store, "aaaa", NULL, &job), 0);
    ck_assert_str_eq(job.again, "");
    ck_assert_str_eq(job.datetime, "");
    ck_assert_ptr_null(job.bbox);
    (void)snprintf(job.datetime, sizeof job.datetime, "2020-02-19T11:21:11Z");
    ck_assert_int_eq(pb_job_set(&job.bbox, "[1,2,3,4]"), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    pb_job_fini(&job);
    reopen_after("");
    ck_assert_int_eq(pb_job_store_find(store, "aaaa", NULL, &job), 0);
    ck_assert_str_eq(job.datetime, "2020-02-19T11:21:11Z");
    ck_assert_str_eq(job.bbox, "[1,2,3,4]");
    pb_job_fini(&job);
}
END_TEST

START_TEST(jobs_of_a_store_without_priorities_have_none)
{
    static const char back[] = WITHOUT_AGAIN
        "DROP TABLE set_parts; DROP TRIGGER jobs_part; DROP INDEX jobs_of_sets;"
        "DROP TABLE set_windows; ALTER TABLE jobs DROP COLUMN delivered_ms; ALTER TABLE jobs DROP "
        "COLUMN inbox;"
        "ALTER TABLE jobs DROP COLUMN set_id; ALTER TABLE jobs DROP COLUMN replaces;"
        "DROP TABLE contents; ALTER TABLE jobs DROP COLUMN anyway;"
        "ALTER TABLE jobs DROP COLUMN folder; ALTER TABLE jobs DROP COLUMN delivered;"
        "DROP TRIGGER companions_kept; ALTER TABLE jobs DROP COLUMN companion;"
        "ALTER TABLE jobs DROP COLUMN has_checksum;"
        "DROP INDEX jobs_waiting; ALTER TABLE jobs DROP COLUMN rank;"
        "PRAGMA user_version = 5;";
    struct pb_job job;
    struct pb_job_place after = {0};
    insert("20261121-082850-aaaa", PB_JOB_ACCEPTED);
    reopen_after(back);
    insert_with("20261121-082850-bbbb", 1);
    ck_assert_int_eq(pb_job_store_next(store, &after, 9, any, NULL, NULL, &job), 1);
    ck_assert_str_eq(job.id, "20261121-082850-bbbb");
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "aaaa", NULL, &job), 0);
    ck_assert_int_eq(job.priority, 0);
    pb_job_fini(&job);
}
END_TEST

START_TEST(store_without_inboxes_gets_them_from_delivered)
{
    static const char back[] = WITHOUT_AGAIN
        "DROP TABLE set_windows; ALTER TABLE jobs DROP COLUMN delivered_ms; DROP TRIGGER "
        "jobs_part; ALTER TABLE jobs DROP COLUMN inbox;"
        "DROP INDEX set_parts_by_scene; ALTER TABLE set_parts DROP COLUMN inbox;"
        "ALTER TABLE set_parts DROP COLUMN up_ms;"
        "CREATE INDEX set_parts_by_scene ON set_parts (scene, pipeline, folder, time_ms);"
        "CREATE TRIGGER jobs_part AFTER UPDATE OF status ON jobs BEGIN SELECT 1; END;"
        "UPDATE jobs SET owned = 1, folder = 'a/b', delivered = '[\"/in/box/a/b/x.tif\"]';"
        "INSERT INTO set_parts (job, set_id, pipeline, folder, scene, path, delivered, time_ms)"
        " VALUES ('j', 's', 'p', '', 't', '/done/t', '[\"/in/box/x.tif\"]', 5),"
        " ('k', 's', 'p', 'a', 'u', '/done/u', NULL, 5);"
        "PRAGMA user_version = 12;";
    static const struct pb_set_key known = {"p", "t", "/in/box", NULL}, none = {"p", "u", "", "a"};
    struct pb_set_last last;
    struct pb_job job;
    insert("20261121-082850-aaaa", PB_JOB_ACCEPTED);
    reopen_after(back);
    ck_assert_int_eq(pb_job_store_find(store, "aaaa", NULL, &job), 0);
    ck_assert_str_eq(job.inbox, "/in/box");
    pb_job_fini(&job);
    ck_assert_int_eq(pb_set_parts_last(store, &known, 0, NULL, &last), 1);
    ck_assert_int_eq(pb_set_parts_last(store, &none, 0, NULL, &last), 1);
}
END_TEST

START_TEST(a_store_of_an_older_service_is_brought_up)
{
    static const char old[] =
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
        "INSERT INTO jobs VALUES (1, '20261121-082850-aaaa', 'a.tif', 1, 3, 1, 'a', 'p', '/a', 1, "
        "2,"
        " 3, 4, 5, 'x', 'cpu', 6, 7, 8, 9, 10, NULL, NULL, NULL, 'c', 'm', 'h');"
        "PRAGMA user_version = 1;";
    char path[PB_FILES_PATH_BYTES];
    int64_t counts[PB_JOB_STATUS_COUNT];
    struct pb_job job;
    sqlite3 *db;
    pb_job_store_close(store);
    store = NULL;
    (void)pb_files_join(path, directory, "jobs.db");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, old, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    open_store();
    ck_assert_str_eq(moved, "");
    ck_assert_int_eq(pb_job_store_find(store, "aa", NULL, &job), 0);
    ck_assert_int_eq(job.uid, -1);
    ck_assert_str_eq(job.error.hint, "h");
    ck_assert_str_eq(job.identity, "");
    ck_assert_int_eq(job.epoch, 0);
    pb_job_fini(&job);
    insert("20261121-082850-bbbb", PB_JOB_FAILED);
    pb_store_counts(store, counts);
    ck_assert_int_eq(counts[PB_JOB_FAILED], 2);
}
END_TEST

static void overwrite(const char *name, const char *text, size_t at)
{
    char path[PB_FILES_PATH_BYTES];
    (void)pb_files_join(path, directory, name);
    int fd = open(path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    for (size_t i = 0; i < 500; i++)
        ck_assert_int_gt(pwrite(fd, text, strlen(text), (off_t)(at + i * strlen(text))), 0);
    (void)close(fd);
}

START_TEST(damaged_file_is_moved_aside_and_replaced)
{
    static const size_t where[] = {0, 4096}; /* the header; a page inside */
    for (size_t i = 0; i < 2; i++) {
        insert("20261121-082850-aaaa", PB_JOB_FAILED);
        pb_job_store_close(store);
        overwrite("jobs.db", "rubbish!", where[i]);
        open_store();
        ck_assert_ptr_nonnull(strstr(moved, "jobs.db.damaged-"));
        ck_assert_int_eq(access(moved, F_OK), 0);
        char ids[64] = "";
        ck_assert_int_eq(list_jobs(PB_JOB_MASK_ALL, INT64_MAX, 10, ids), 0);
        ck_assert_str_eq(ids, "");
    }
}
END_TEST

/* SQLite's own file layer with a disk below it that fails. */
static sqlite3_vfs shim, *real_vfs;
static sqlite3_io_methods shim_methods, log_methods;
static const sqlite3_io_methods *real_methods;
static int read_error, rubbish_opens;
static bool rubbish, log_is_full;

static int shim_read(sqlite3_file *file, void *to, int bytes, sqlite3_int64 at)
{
    if (read_error != 0)
        return read_error;
    int rc = real_methods->xRead(file, to, bytes, at);
    if (rubbish)
        memset(to, 0x5a, (size_t)bytes);
    return rc;
}

static int refuse_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 at)
{
    (void)file, (void)from, (void)bytes, (void)at;
    return SQLITE_FULL;
}

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    int rc = real_vfs->xOpen(vfs, name, file, flags, out);
    if (rc == SQLITE_OK && log_is_full && (flags & SQLITE_OPEN_WAL) != 0) {
        log_methods = *file->pMethods;
        log_methods.xWrite = refuse_write;
        file->pMethods = &log_methods;
    }
    if (rc != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0)
        return rc;
    rubbish = rubbish_opens-- > 0;
    real_methods = file->pMethods;
    shim_methods = *real_methods;
    shim_methods.xRead = shim_read;
    file->pMethods = &shim_methods;
    return rc;
}

static void put_shim_below(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    shim = *real_vfs;
    shim.zName = "shim";
    shim.xOpen = shim_open;
    ck_assert_int_eq(sqlite3_vfs_register(&shim, 1), SQLITE_OK);
}

START_TEST(failing_or_full_disk_does_not_condemn_the_store)
{
    static const int errors[] = {SQLITE_IOERR_READ, SQLITE_FULL, SQLITE_BUSY, SQLITE_NOMEM};
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    pb_job_store_close(store);
    store = NULL;
    put_shim_below();
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct pb_err err = {0};
        read_error = errors[i];
        ck_assert_int_lt(pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err,
                                           moved, &store),
                         0);
        ck_assert_int_eq(err.code, PB_E_SERVICE_STATE);
        ck_assert_str_eq(moved, "");
    }
    read_error = 0;
    open_store();
    ck_assert_int_eq(status_of("20261121-082850-aaaa"), PB_JOB_FAILED);
}
END_TEST

/* Fails to upgrade the store of version 16. */
static void fail_upgrade(const char *why)
{
    struct pb_err err = {0};
    ck_assert_int_lt(
        pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved, &store),
        0);
    ck_assert_str_eq(moved, "");
    ck_assert_int_eq(err.code, PB_E_SERVICE_STATE);
    ck_assert_msg(strstr(err.msg, why) && strstr(err.msg, "jobs.db.schema16"), "%s", err.msg);
}

static ino_t inode_of(const char *name)
{
    char path[PB_FILES_PATH_BYTES];
    struct stat st;
    (void)pb_files_join(path, directory, name);
    ck_assert_int_eq(lstat(path, &st), 0);
    return st.st_ino;
}

START_TEST(test_upgrades_that_fail_share_one_copy)
{
    struct pb_job job;
    ino_t copy = 0;
    make_version_16();
    put_shim_below();
    log_is_full = true;
    for (int i = 0; i < 3; i++) {
        fail_upgrade("Make room for the upgrade");
        ck_assert(i == 0 || inode_of("jobs.db.schema16") == copy);
        copy = inode_of("jobs.db.schema16");
    }
    log_is_full = false;
    open_store();
    ck_assert_uint_eq(inode_of("jobs.db.schema16"), copy);
    find("nkdv", &job);
    ck_assert_uint_eq(job.manifest.n_entries, 2);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_copy_that_is_older_than_the_store_is_replaced)
{
    static const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char path[PB_FILES_PATH_BYTES];
    make_version_16();
    change_file("CREATE VIEW mine AS SELECT id, delivered FROM jobs;");
    fail_upgrade("error in view mine");
    const ino_t copy = inode_of("jobs.db.schema16");
    (void)pb_files_join(path, directory, "jobs.db.schema16");
    ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
    fail_upgrade("error in view mine");
    ck_assert_uint_ne(inode_of("jobs.db.schema16"), copy);
}
END_TEST

START_TEST(test_upgrade_removes_only_its_own_part_file)
{
    char part[PB_FILES_PATH_BYTES];
    make_version_16();
    (void)pb_files_join(part, directory, "jobs.db.schema16.part");
    ck_assert_int_eq(symlink("elsewhere", part), 0);
    const ino_t foreign = inode_of("jobs.db.schema16.part");
    fail_upgrade(".part");
    ck_assert_uint_eq(inode_of("jobs.db.schema16.part"), foreign);
    ck_assert_int_eq(unlink(part), 0);
    (void)close(open(part, O_WRONLY | O_CREAT, 0600)); /* a service was killed */
    open_store();
    ck_assert_int_eq(access(part, F_OK), -1);
}
END_TEST

START_TEST(damage_that_is_seen_once_is_not_believed)
{
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    pb_job_store_close(store);
    put_shim_below();
    rubbish_opens = 1;
    open_store();
    ck_assert_str_eq(moved, "");
    ck_assert_int_eq(status_of("20261121-082850-aaaa"), PB_JOB_FAILED);
    pb_job_store_close(store);
    rubbish_opens = 2;
    open_store();
    ck_assert_ptr_nonnull(strstr(moved, "jobs.db.damaged-"));
}
END_TEST

static unsigned mode_of(const char *name)
{
    char path[PB_FILES_PATH_BYTES];
    struct stat st;
    (void)pb_files_join(path, directory, name);
    ck_assert_int_eq(stat(path, &st), 0);
    return (unsigned)st.st_mode & 07777;
}

START_TEST(the_store_is_readable_by_the_service_alone)
{
    static const char *const names[] = {"jobs.db", "jobs.db-wal", "jobs.db-shm"};
    for (int round = 0; round < 2; round++) {
        insert(round ? "20261121-082850-bbbb" : "20261121-082850-aaaa", PB_JOB_FAILED);
        for (size_t i = 0; i < 3; i++)
            ck_assert_uint_eq(mode_of(names[i]), 0600);
        char path[PB_FILES_PATH_BYTES];
        (void)pb_files_join(path, directory, names[0]);
        pb_job_store_close(store);
        ck_assert_int_eq(chmod(path, 0644), 0); /* mode of an older service */
        open_store();
    }
}
END_TEST

START_TEST(a_store_of_a_newer_service_is_refused_and_kept)
{
    char path[PB_FILES_PATH_BYTES];
    struct pb_err err = {0};
    struct pb_job_store *other = NULL;
    struct stat before, after;
    pb_job_store_close(store);
    store = NULL;
    (void)pb_files_join(path, directory, "jobs.db");
    int fd = open(path, O_WRONLY);
    /* Bytes 60 to 63 of the header are user_version, big-endian. */
    ck_assert_int_eq(pwrite(fd, "\0\0\0\x63", 4, 60), 4);
    (void)close(fd);
    ck_assert_int_eq(stat(path, &before), 0);
    ck_assert_int_ne(
        pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved, &other),
        0);
    ck_assert_msg(strstr(err.msg, "newer pushbroomd " PB_VERSION " (schema 99; this is"), "%s",
                  err.msg);
    ck_assert_msg(strstr(err.msg, path) && strstr(err.msg, "restore a backup"), "%s", err.msg);
    ck_assert_str_eq(moved, "");
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

START_TEST(a_directory_that_is_not_there_gives_words)
{
    struct pb_err err = {0};
    struct pb_job_store *other = NULL;
    ck_assert_int_ne(pb_job_store_open(&(struct pb_store_place){.directory = "/no/such/place"},
                                       &err, moved, &other),
                     0);
    ck_assert_int_eq(err.code, PB_E_SERVICE_STATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "/no/such/place/jobs.db"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store_file");
    TCase *tests = tcase_create("job_store_file");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, jobs_of_a_store_without_priorities_have_none);
    tcase_add_test(tests, store_without_inboxes_gets_them_from_delivered);
    tcase_add_test(tests, test_version_16_jobs_keep_their_files);
    tcase_add_test(tests, test_upgrade_keeps_a_copy_of_the_store);
    tcase_add_test(tests, test_upgrades_that_fail_share_one_copy);
    tcase_add_test(tests, test_copy_that_is_older_than_the_store_is_replaced);
    tcase_add_test(tests, test_upgrade_removes_only_its_own_part_file);
    tcase_add_test(tests, test_store_that_cannot_be_upgraded_is_kept);
    tcase_add_test(tests, test_version_16_sets_keep_their_files);
    tcase_add_test(tests, test_version_16_companion_is_kept_at_its_new_place);
    tcase_add_test(tests, test_damaged_manifest_is_empty_and_logged);
    tcase_add_test(tests, test_version_19_running_job_starts_with_epoch_1);
    tcase_add_test(tests, jobs_of_a_store_without_places_get_none);
    tcase_add_test(tests, a_store_of_an_older_service_is_brought_up);
    tcase_add_test(tests, failing_or_full_disk_does_not_condemn_the_store);
    tcase_add_test(tests, damage_that_is_seen_once_is_not_believed);
    tcase_add_test(tests, the_store_is_readable_by_the_service_alone);
    tcase_add_test(tests, damaged_file_is_moved_aside_and_replaced);
    tcase_add_test(tests, a_store_of_a_newer_service_is_refused_and_kept);
    tcase_add_test(tests, a_directory_that_is_not_there_gives_words);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
