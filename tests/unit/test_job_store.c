/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/files.h"
#include "service/jobs/job_store.h"
#include "service/jobs/set_parts.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];
static char moved[PB_FILES_PATH_BYTES];
static struct pb_job_store *store;

static void open_store(void)
{
    struct pb_err err = {0};
    int rc = pb_job_store_open(directory, &err, moved, &store);
    ck_assert_msg(rc == 0, "%s", err.msg);
}

static void make(void)
{
    (void)snprintf(directory, sizeof directory, "/tmp/pb-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    open_store();
}

static void end(void)
{
    char command[128];
    pb_job_store_close(store);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void insert(const char *id, enum pb_job_status status)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    (void)snprintf(job.name, sizeof job.name, "%s.tif", id);
    (void)snprintf(job.scene, sizeof job.scene, "%s", id);
    job.status = status;
    job.created_ms = 1000;
    ck_assert_int_eq(pb_job_store_insert(store, &job, NULL), 0);
    ck_assert_int_gt(job.seq, 0);
    pb_job_fini(&job);
}

static enum pb_job_status status_of(const char *id)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    enum pb_job_status status = job.status;
    pb_job_fini(&job);
    return status;
}

static bool any(void *user, const struct pb_job *job)
{
    const char *not_this = user;
    return not_this == NULL || strcmp(job->id, not_this) != 0;
}

static int count(void *user, struct pb_job *job)
{
    char *ids = user;
    (void)strcat(ids, job->id + 16);
    return 0;
}

START_TEST(every_member_comes_back_after_reopening)
{
    struct pb_job job, back;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082850-abcd");
    (void)snprintf(job.name, sizeof job.name, "a'b\".tif");
    job.owned = true;
    job.created_ms = 1;
    job.uid = 4000000000;
    ck_assert_int_eq(pb_job_store_insert(store, &job, NULL), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 2), 0);
    (void)snprintf(job.stage, sizeof job.stage, "compute");
    (void)snprintf(job.device, sizeof job.device, "cuda:0");
    (void)snprintf(job.device_why, sizeof job.device_why, "on the CPU after device.lost: x");
    (void)snprintf(job.pipeline, sizeof job.pipeline, "p");
    (void)snprintf(job.identity, sizeof job.identity, "1 2 3 4");
    job.progress = 42;
    job.tiles_done = 1;
    job.tiles_total = 2;
    job.bytes_read = INT64_C(1) << 40;
    job.bytes_written = 3;
    job.elapsed_ms = 4;
    ck_assert_int_eq(pb_job_set(&job.input, "/in"), 0);
    ck_assert_int_eq(pb_job_set(&job.products, "[]"), 0);
    pb_job_fail_words(&job, "input.damaged", "m", "h");
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_FAILED, 9), 0);
    ck_assert_int_eq(pb_job_store_update(store, &job, NULL), 0);
    pb_job_store_close(store);
    open_store();
    ck_assert_str_eq(moved, "");
    ck_assert_int_eq(pb_job_store_find(store, job.id, NULL, &back), 0);
    ck_assert_str_eq(back.name, job.name);
    ck_assert(back.owned);
    ck_assert_int_eq(back.status, PB_JOB_FAILED);
    ck_assert_int_eq(back.attempts, 1);
    ck_assert_int_eq(back.created_ms, 1);
    ck_assert_int_eq(back.started_ms, 2);
    ck_assert_int_eq(back.finished_ms, 9);
    ck_assert_int_eq(back.progress, 42);
    ck_assert_int_eq(back.bytes_read, INT64_C(1) << 40);
    ck_assert_int_eq(back.elapsed_ms, 4);
    ck_assert_str_eq(back.stage, "compute");
    ck_assert_str_eq(back.device, "cuda:0");
    ck_assert_str_eq(back.input, "/in");
    ck_assert_int_eq(back.uid, 4000000000);
    ck_assert_str_eq(back.identity, "1 2 3 4");
    ck_assert_str_eq(back.products, "[]");
    ck_assert_ptr_null(back.report);
    ck_assert_ptr_null(back.directory);
    ck_assert_str_eq(back.error.code, "input.damaged");
    ck_assert_str_eq(back.error.message, "m");
    ck_assert_str_eq(back.error.hint, "h");
    pb_job_fini(&back);
    pb_job_fini(&job);
}
END_TEST

START_TEST(the_same_id_twice_is_refused)
{
    struct pb_job job;
    insert("20261121-082850-abcd", PB_JOB_ACCEPTED);
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082850-abcd");
    ck_assert_int_eq(pb_job_store_insert(store, &job, NULL), -EEXIST);
    pb_job_fini(&job);
}
END_TEST

START_TEST(a_unique_end_of_an_id_finds_the_job)
{
    struct pb_job job;
    struct pb_err err = {0};
    insert("20261121-082850-abcd", PB_JOB_ACCEPTED);
    insert("20261121-082851-abcd", PB_JOB_ACCEPTED);
    insert("20261121-082851-wxyz", PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_job_store_find(store, "yz", NULL, &job), 0);
    ck_assert_str_eq(job.id, "20261121-082851-wxyz");
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "51-abcd", NULL, &job), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "abcd", &err, &job), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "several"));
    ck_assert_int_eq(pb_job_store_find(store, "nope", NULL, &job), -ENOENT);
    ck_assert_int_eq(pb_job_store_find(store, "%", NULL, &job), -ENOENT);
    ck_assert_int_eq(pb_job_store_find(store, "' OR 1=1 --", NULL, &job), -ENOENT);
    ck_assert_int_eq(pb_job_store_find(store, "", NULL, &job), -ENOENT);
}
END_TEST

START_TEST(next_is_the_oldest_accepted_job_that_may_run)
{
    struct pb_job job;
    struct pb_job_place after = {0};
    ck_assert_int_eq(pb_job_store_next(store, &after, 1000, any, NULL, NULL, &job), 0);
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    insert("20261121-082859-bbbb", PB_JOB_ACCEPTED);
    insert("20261121-082851-cccc", PB_JOB_ACCEPTED);
    char first[] = "20261121-082859-bbbb";
    ck_assert_int_eq(pb_job_store_next(store, &after, 1000, any, NULL, NULL, &job), 1);
    ck_assert_str_eq(job.id, first);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_next(store, &after, 1000, any, first, NULL, &job), 1);
    ck_assert_str_eq(job.id, "20261121-082851-cccc");
    pb_job_fini(&job);
}
END_TEST

static bool is_last(void *user, const struct pb_job *job)
{
    ++*(int *)user;
    return strcmp(job->id + 16, "eeee") == 0 && strcmp(job->scene, job->id) == 0;
}

START_TEST(next_looks_at_so_many_jobs_at_a_time)
{
    static const char *const ids[] = {"20261121-082850-aaaa", "20261121-082850-bbbb",
                                      "20261121-082850-cccc", "20261121-082850-dddd",
                                      "20261121-082850-eeee"};
    struct pb_job job;
    struct pb_job_place after = {0};
    int looks = 0;
    for (int i = 0; i < 5; i++)
        insert(ids[i], PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_job_store_next(store, &after, 2, is_last, &looks, NULL, &job), 0);
    ck_assert_int_eq(looks, 2);
    ck_assert_int_gt(after.seq, 0);
    ck_assert_int_eq(pb_job_store_next(store, &after, 2, is_last, &looks, NULL, &job), 0);
    ck_assert_int_eq(looks, 4);
    ck_assert_int_eq(pb_job_store_next(store, &after, 2, is_last, &looks, NULL, &job), 1);
    ck_assert_str_eq(job.id, ids[4]);
    ck_assert_str_eq(job.name, "20261121-082850-eeee.tif");
    ck_assert_int_eq(after.seq, 0);
    pb_job_fini(&job);
    /* All were looked at: the next one begins anew. */
    ck_assert_int_eq(pb_job_store_next(store, &after, 6, any, (void *)"none", NULL, &job), 1);
    pb_job_fini(&job);
    ck_assert_int_eq(after.seq, 0);
}
END_TEST

static void insert_with(const char *id, int priority)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    job.priority = priority;
    ck_assert_int_eq(pb_job_store_insert(store, &job, NULL), 0);
    pb_job_fini(&job);
}

/* Lets none through. */
static bool collect(void *user, const struct pb_job *job)
{
    char *ids = user;
    (void)strcat(ids, job->id + 16);
    return false;
}

START_TEST(next_goes_by_priority_and_then_by_age)
{
    struct pb_job job;
    struct pb_job_place after = {0};
    char ids[64] = "";
    insert_with("20261121-082850-aaaa", 0);
    insert_with("20261121-082850-bbbb", 10);
    insert_with("20261121-082850-cccc", -5);
    insert_with("20261121-082850-dddd", 10);
    insert_with("20261121-082850-eeee", 0);
    do /* two at a time: places are gone on from */
        ck_assert_int_eq(pb_job_store_next(store, &after, 2, collect, ids, NULL, &job), 0);
    while (after.seq != 0);
    ck_assert_str_eq(ids, "bbbbddddaaaaeeeecccc");
    ck_assert_int_eq(pb_job_store_next(store, &after, 2, any, NULL, NULL, &job), 1);
    ck_assert_int_eq(job.priority, 10);
    pb_job_fini(&job);
}
END_TEST

START_TEST(recover_runs_running_jobs_again_and_touches_no_other)
{
    insert("20261121-082850-aaaa", PB_JOB_RUNNING);
    insert("20261121-082850-bbbb", PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_job_store_recover(store, 5, NULL), 1);
    ck_assert_int_eq(status_of("aaaa"), PB_JOB_ACCEPTED);
    ck_assert_int_eq(status_of("bbbb"), PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_job_store_recover(store, 6, NULL), 0);
}
END_TEST

START_TEST(list_and_counts_filter_by_status_newest_first)
{
    char ids[64] = "";
    int64_t counts[PB_JOB_STATUS_COUNT];
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    insert("20261121-082850-bbbb", PB_JOB_SUCCESSFUL);
    insert("20261121-082850-cccc", PB_JOB_FAILED);
    ck_assert_int_eq(pb_job_store_list(store, PB_JOB_MASK_ALL, INT64_MAX, 10, count, ids, NULL), 0);
    ck_assert_str_eq(ids, "ccccbbbbaaaa");
    ids[0] = '\0';
    ck_assert_int_eq(
        pb_job_store_list(store, PB_JOB_MASK(PB_JOB_FAILED), INT64_MAX, 1, count, ids, NULL), 0);
    ck_assert_str_eq(ids, "cccc");
    ck_assert_int_eq(pb_job_store_counts(store, counts, NULL), 0);
    ck_assert_int_eq(counts[PB_JOB_FAILED], 2);
    ck_assert_int_eq(counts[PB_JOB_SUCCESSFUL], 1);
    ck_assert_int_eq(counts[PB_JOB_ACCEPTED], 0);
}
END_TEST

START_TEST(a_list_goes_on_below_a_job_of_any_state)
{
    char ids[64] = "";
    struct pb_job job;
    unsigned mask = PB_JOB_MASK(PB_JOB_FAILED) | PB_JOB_MASK(PB_JOB_DISMISSED);
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    insert("20261121-082850-bbbb", PB_JOB_DISMISSED);
    insert("20261121-082850-cccc", PB_JOB_ACCEPTED);
    insert("20261121-082850-dddd", PB_JOB_FAILED);
    ck_assert_int_eq(pb_job_store_list(store, mask, INT64_MAX, 10, count, ids, NULL), 0);
    ck_assert_str_eq(ids, "ddddbbbbaaaa");
    ck_assert_int_eq(pb_job_store_find(store, "cccc", NULL, &job), 0);
    ids[0] = '\0';
    ck_assert_int_eq(pb_job_store_list(store, mask, job.seq, 1, count, ids, NULL), 0);
    ck_assert_str_eq(ids, "bbbb");
    ids[0] = '\0';
    ck_assert_int_eq(pb_job_store_list(store, PB_JOB_MASK_ALL, job.seq, 10, count, ids, NULL), 0);
    ck_assert_str_eq(ids, "bbbbaaaa");
    ids[0] = '\0';
    ck_assert_int_eq(pb_job_store_list(store, 0, INT64_MAX, 10, count, ids, NULL), 0);
    ck_assert_str_eq(ids, "");
    pb_job_fini(&job);
}
END_TEST

/* What a question costs must not follow the number of jobs: 1,000 rows are a scan of over 5,000
 * steps. */
START_TEST(questions_cost_the_same_with_a_thousand_jobs)
{
    enum { JOBS = 1000, STEPS_OF_A_SCAN = 5 * JOBS };
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    char id[PB_JOB_ID_BYTES], ids[4096] = "";
    int64_t counts[PB_JOB_STATUS_COUNT];
    struct pb_job job;
    for (unsigned i = 0; i < JOBS; i++) {
        (void)snprintf(id, sizeof id, "20261121-082850-0%c%c%c", digits[i >> 10 & 31],
                       digits[i >> 5 & 31], digits[i & 31]);
        insert(id, i == 3 ? PB_JOB_FAILED : i % 2 ? PB_JOB_ACCEPTED : PB_JOB_SUCCESSFUL);
    }
    uint64_t before = pb_job_store_steps(store);
    ck_assert_int_eq(pb_job_store_find(store, "20261121-082850-0003", NULL, &job), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "50-0004", NULL, &job), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "zzzz", NULL, &job), -ENOENT);
    ck_assert_int_eq(pb_job_store_find(store, "4", NULL, &job), -ENOENT);
    ck_assert_int_eq(pb_job_store_list(store, PB_JOB_MASK_ALL, INT64_MAX, 5, count, ids, NULL), 0);
    ck_assert_int_eq(pb_job_store_list(store, PB_JOB_MASK(PB_JOB_FAILED) | PB_JOB_MASK_FINISHED,
                                       INT64_MAX, 5, count, ids, NULL),
                     0);
    ck_assert_int_eq(
        pb_job_store_list(store, PB_JOB_MASK(PB_JOB_RUNNING), INT64_MAX, 5, count, ids, NULL), 0);
    ck_assert_int_eq(pb_job_store_counts(store, counts, NULL), 0);
    ck_assert_int_eq(pb_job_store_prune(store, JOBS, NULL), 0);
    struct pb_job_place after = {0};
    ck_assert_int_eq(pb_job_store_next(store, &after, 1000, any, NULL, NULL, &job), 1);
    pb_job_fini(&job);
    ck_assert_int_eq(counts[PB_JOB_ACCEPTED], JOBS / 2 - 1);
    ck_assert_uint_lt(pb_job_store_steps(store) - before, STEPS_OF_A_SCAN);
}
END_TEST

/* The store is closed, changed and opened again, which is no reason to move it aside. */
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

START_TEST(jobs_of_a_store_without_priorities_have_none)
{
    static const char back[] =
        "DROP TABLE set_parts; DROP TRIGGER jobs_part; DROP INDEX jobs_of_sets;"
        "DROP TABLE set_windows; ALTER TABLE jobs DROP COLUMN inbox;"
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

START_TEST(jobs_and_sets_of_a_store_without_inboxes_get_them_from_what_was_delivered)
{
    static const char back[] =
        "DROP TABLE set_windows; DROP TRIGGER jobs_part; ALTER TABLE jobs DROP COLUMN inbox;"
        "DROP INDEX set_parts_by_scene; ALTER TABLE set_parts DROP COLUMN inbox;"
        "CREATE INDEX set_parts_by_scene ON set_parts (scene, pipeline, folder, time_ms);"
        "CREATE TRIGGER jobs_part AFTER UPDATE OF status ON jobs BEGIN SELECT 1; END;"
        "UPDATE jobs SET owned = 1, folder = 'a/b', delivered = '[\"/in/box/a/b/x.tif\"]';"
        "INSERT INTO set_parts VALUES ('j', 's', 'p', '', 't', '/done/t', '[\"/in/box/x.tif\"]', "
        "NULL, 5), ('k', 's', 'p', 'a', 'u', '/done/u', NULL, NULL, 5);"
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
    pb_job_fini(&job);
    insert("20261121-082850-bbbb", PB_JOB_FAILED);
    ck_assert_int_eq(pb_job_store_counts(store, counts, NULL), 0);
    ck_assert_int_eq(counts[PB_JOB_FAILED], 2);
}
END_TEST

START_TEST(a_reader_sees_what_is_committed_and_changes_nothing)
{
    struct pb_job_store *reader = NULL;
    struct pb_job job;
    int64_t counts[PB_JOB_STATUS_COUNT];
    ck_assert_int_eq(pb_job_store_open_reader(directory, NULL, &reader), 0);
    ck_assert_int_eq(pb_job_store_find(reader, "aaaa", NULL, &job), -ENOENT);
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    ck_assert_int_eq(pb_job_store_find(reader, "aaaa", NULL, &job), 0);
    ck_assert_int_eq(pb_job_store_counts(reader, counts, NULL), 0);
    ck_assert_int_eq(counts[PB_JOB_FAILED], 1);
    ck_assert_int_ne(pb_job_store_update(reader, &job, NULL), 0);
    pb_job_fini(&job);
    pb_job_store_close(reader);
}
END_TEST

START_TEST(prune_forgets_the_oldest_finished_jobs_only)
{
    char ids[64] = "";
    insert("20261121-082850-aaaa", PB_JOB_ACCEPTED);
    insert("20261121-082850-bbbb", PB_JOB_SUCCESSFUL);
    insert("20261121-082850-cccc", PB_JOB_FAILED);
    insert("20261121-082850-dddd", PB_JOB_DISMISSED);
    insert("20261121-082850-eeee", PB_JOB_RUNNING);
    ck_assert_int_eq(pb_job_store_prune(store, 5, NULL), 0);
    ck_assert_int_eq(pb_job_store_prune(store, 1, NULL), 2);
    ck_assert_int_eq(pb_job_store_list(store, PB_JOB_MASK_ALL, INT64_MAX, 10, count, ids, NULL), 0);
    ck_assert_str_eq(ids, "eeeeddddaaaa");
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

START_TEST(a_damaged_file_is_moved_aside_and_a_fresh_one_started)
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
        ck_assert_int_eq(pb_job_store_list(store, PB_JOB_MASK_ALL, INT64_MAX, 10, count, ids, NULL),
                         0);
        ck_assert_str_eq(ids, "");
    }
}
END_TEST

/* SQLite's own file layer with a disk below it that fails. */
static sqlite3_vfs shim, *real_vfs;
static sqlite3_io_methods shim_methods;
static const sqlite3_io_methods *real_methods;
static int read_error, rubbish_opens;
static bool rubbish;

static int shim_read(sqlite3_file *file, void *to, int bytes, sqlite3_int64 at)
{
    if (read_error != 0)
        return read_error;
    int rc = real_methods->xRead(file, to, bytes, at);
    if (rubbish)
        memset(to, 0x5a, (size_t)bytes);
    return rc;
}

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    int rc = real_vfs->xOpen(vfs, name, file, flags, out);
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

START_TEST(a_disk_that_fails_or_is_full_says_nothing_about_the_store)
{
    static const int errors[] = {SQLITE_IOERR_READ, SQLITE_FULL, SQLITE_BUSY, SQLITE_NOMEM};
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    pb_job_store_close(store);
    store = NULL;
    put_shim_below();
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct pb_err err = {0};
        read_error = errors[i];
        ck_assert_int_lt(pb_job_store_open(directory, &err, moved, &store), 0);
        ck_assert_int_eq(err.code, PB_E_SERVICE_STATE);
        ck_assert_str_eq(moved, "");
    }
    read_error = 0;
    open_store();
    ck_assert_int_eq(status_of("20261121-082850-aaaa"), PB_JOB_FAILED);
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
        ck_assert_int_eq(chmod(path, 0644), 0); /* as an older service left it */
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
    ck_assert_int_ne(pb_job_store_open(directory, &err, moved, &other), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "newer"));
    ck_assert_str_eq(moved, "");
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

START_TEST(a_directory_that_is_not_there_gives_words)
{
    struct pb_err err = {0};
    struct pb_job_store *other = NULL;
    ck_assert_int_ne(pb_job_store_open("/no/such/place", &err, moved, &other), 0);
    ck_assert_int_eq(err.code, PB_E_SERVICE_STATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "/no/such/place/jobs.db"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store");
    TCase *tests = tcase_create("job_store");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, every_member_comes_back_after_reopening);
    tcase_add_test(tests, the_same_id_twice_is_refused);
    tcase_add_test(tests, a_unique_end_of_an_id_finds_the_job);
    tcase_add_test(tests, next_is_the_oldest_accepted_job_that_may_run);
    tcase_add_test(tests, next_goes_by_priority_and_then_by_age);
    tcase_add_test(tests, jobs_of_a_store_without_priorities_have_none);
    tcase_add_test(tests, next_looks_at_so_many_jobs_at_a_time);
    tcase_add_test(tests, recover_runs_running_jobs_again_and_touches_no_other);
    tcase_add_test(tests, list_and_counts_filter_by_status_newest_first);
    tcase_add_test(tests, a_list_goes_on_below_a_job_of_any_state);
    tcase_add_test(tests, questions_cost_the_same_with_a_thousand_jobs);
    tcase_add_test(tests,
                   jobs_and_sets_of_a_store_without_inboxes_get_them_from_what_was_delivered);
    tcase_add_test(tests, a_store_of_an_older_service_is_brought_up);
    tcase_add_test(tests, a_reader_sees_what_is_committed_and_changes_nothing);
    tcase_add_test(tests, prune_forgets_the_oldest_finished_jobs_only);
    tcase_add_test(tests, a_disk_that_fails_or_is_full_says_nothing_about_the_store);
    tcase_add_test(tests, damage_that_is_seen_once_is_not_believed);
    tcase_add_test(tests, the_store_is_readable_by_the_service_alone);
    tcase_add_test(tests, a_damaged_file_is_moved_aside_and_a_fresh_one_started);
    tcase_add_test(tests, a_store_of_a_newer_service_is_refused_and_kept);
    tcase_add_test(tests, a_directory_that_is_not_there_gives_words);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
