/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Changes of several threads in one transaction. Tests make a group by taking the store, letting
 * threads queue up, and leaving it. */
#include "service/jobs/job_store_sql.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 6
#define ROUNDS  20

static char directory[64], path[96];
static struct pb_job_store *store, *reader;

static void make(void)
{
    char moved[PB_FILES_PATH_BYTES];
    struct pb_err err = {0};
    (void)snprintf(directory, sizeof directory, "/tmp/pb-commit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/jobs.db", directory);
    ck_assert_msg(pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved,
                                    &store) == 0,
                  "%s", err.msg);
    ck_assert_msg(pb_job_store_open_reader(&(struct pb_store_place){.directory = directory}, &err,
                                           &reader) == 0,
                  "%s", err.msg);
}

static void end(void)
{
    char command[128];
    pb_job_store_close(reader);
    pb_job_store_close(store);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void make_job(struct pb_job *job, const char *id)
{
    pb_job_init(job);
    (void)snprintf(job->id, sizeof job->id, "%.23s", id);
    (void)snprintf(job->name, sizeof job->name, "%s.tif", id);
}

/* Another connection finds it: it is committed. */
static bool is_stored(struct pb_job_store *by, const char *id, enum pb_job_status status)
{
    struct pb_job job;
    if (pb_job_store_find(by, id, NULL, &job) != 0)
        return false;
    bool is = job.status == status;
    pb_job_fini(&job);
    return is;
}

static void run_sql(const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s", why);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

/* A thread that stores one job. */
struct writer {
    pthread_t thread;
    struct pb_job job;
    bool bulk, updates;
    int rc, result;
    struct pb_err err;
};

static void *write_one(void *user)
{
    struct writer *writer = user;
    struct pb_job *job = &writer->job;
    if (writer->updates)
        writer->rc = pb_store_finish(store, job, &writer->err);
    else if (writer->bulk)
        writer->rc = pb_store_offer_all(store, &job, 1, &writer->result, &writer->err);
    else
        writer->rc = pb_store_offer(store, job, &writer->err);
    return NULL;
}

static size_t waiting(void)
{
    struct pb_job_change *change;
    size_t n = 0;
    (void)pthread_mutex_lock(&store->lock);
    STAILQ_FOREACH(change, &store->changes, next)
    {
        n++;
    }
    (void)pthread_mutex_unlock(&store->lock);
    return n;
}

static void start(struct writer *writers, size_t n, size_t before)
{
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(pthread_create(&writers[i].thread, NULL, write_one, &writers[i]), 0);
        while (waiting() < before + i + 1)
            (void)usleep(500);
    }
}

static void finish(struct writer *writers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(pthread_join(writers[i].thread, NULL), 0);
}

static void fini_jobs(struct writer *writers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pb_job_fini(&writers[i].job);
}

START_TEST(what_waits_is_one_transaction)
{
    struct writer writers[THREADS] = {{.rc = 1}};
    char id[PB_JOB_ID_BYTES];
    uint64_t before = pb_store_changes(store);
    pb_job_store_lock(store);
    for (int i = 0; i < THREADS; i++) {
        (void)snprintf(id, sizeof id, "20260101-000000-000%d", i);
        make_job(&writers[i].job, id);
    }
    start(writers, THREADS, 0);
    ck_assert(!is_stored(reader, writers[0].job.id, PB_JOB_ACCEPTED));
    pb_job_store_unlock(store);
    finish(writers, THREADS);
    ck_assert_uint_eq(pb_store_changes(store), before + 1);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(writers[i].rc, 0);
        ck_assert_int_gt(writers[i].job.seq, 0);
        ck_assert(is_stored(reader, writers[i].job.id, PB_JOB_ACCEPTED));
    }
    fini_jobs(writers, THREADS);
}
END_TEST

/* Each thread sees by a connection of its own, right after its call, what it stored. */
static void *write_and_read(void *user)
{
    const int number = *(const int *)user;
    struct pb_job_store *mine = NULL;
    struct pb_job job;
    char id[PB_JOB_ID_BYTES];
    ck_assert_int_eq(
        pb_job_store_open_reader(&(struct pb_store_place){.directory = directory}, NULL, &mine), 0);
    for (int i = 0; i < ROUNDS; i++) {
        (void)snprintf(id, sizeof id, "20260101-0000%02d-000%d", i, number);
        make_job(&job, id);
        ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
        ck_assert(is_stored(mine, id, PB_JOB_ACCEPTED));
        ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 1000), 0);
        ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
        ck_assert(is_stored(mine, id, PB_JOB_RUNNING));
        ck_assert(is_stored(store, id, PB_JOB_RUNNING));
        pb_job_fini(&job);
    }
    pb_job_store_close(mine);
    return NULL;
}

START_TEST(a_change_is_stored_when_its_call_returns)
{
    pthread_t thread[THREADS];
    int number[THREADS];
    int64_t counts[PB_JOB_STATUS_COUNT];
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, write_and_read, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    pb_store_counts(store, counts);
    ck_assert_int_eq(counts[PB_JOB_RUNNING], THREADS * ROUNDS);
}
END_TEST

START_TEST(a_bulk_change_waits_for_others_but_not_twice)
{
    for (int waited = 0; waited < 2; waited++) {
        struct writer writers[2] = {{.bulk = true}, {.bulk = false}};
        char id[2][PB_JOB_ID_BYTES];
        uint64_t before = pb_store_changes(store);
        pb_job_store_lock(store);
        for (int i = 0; i < 2; i++) {
            (void)snprintf(id[i], sizeof id[i], "20260101-00000%d-000%d", waited & 1, i & 1);
            make_job(&writers[i].job, id[i]);
        }
        start(writers, 2, 0);
        store->bulk_waited = waited == 1; /* the store is ours: no other thread looks */
        pb_job_store_unlock(store);
        finish(writers, 2);
        ck_assert_int_eq(writers[0].rc + writers[0].result + writers[1].rc, 0);
        ck_assert_uint_eq(pb_store_changes(store), before + (waited == 1 ? 1 : 2));
        ck_assert_int_eq(writers[0].job.seq < writers[1].job.seq, waited == 1);
        fini_jobs(writers, 2);
    }
}
END_TEST

START_TEST(a_change_that_fails_costs_no_other)
{
    struct writer writers[3] = {{.updates = true}, {.updates = true}, {.updates = true}};
    static const char *const ids[] = {"20260101-000000-000a", "20260101-000000-000b",
                                      "20260101-000000-000c"};
    run_sql("CREATE TRIGGER refuse BEFORE UPDATE ON jobs WHEN NEW.id LIKE '%b' BEGIN"
            " SELECT RAISE(ABORT, 'as the test wants it'); END");
    for (int i = 0; i < 3; i++) {
        make_job(&writers[i].job, ids[i]);
        ck_assert_int_eq(pb_store_offer(store, &writers[i].job, NULL), 0);
        ck_assert_int_eq(pb_job_move(&writers[i].job, PB_JOB_RUNNING, 1000), 0);
    }
    pb_job_store_lock(store);
    start(writers, 3, 0);
    pb_job_store_unlock(store);
    finish(writers, 3);
    ck_assert_int_eq(writers[0].rc, 0);
    ck_assert_int_lt(writers[1].rc, 0);
    ck_assert_ptr_nonnull(strstr(writers[1].err.msg, "as the test wants it"));
    ck_assert_int_eq(writers[1].err.code, PB_E_SERVICE_STATE);
    ck_assert_int_eq(writers[2].rc, 0);
    ck_assert(is_stored(reader, ids[0], PB_JOB_RUNNING));
    ck_assert(is_stored(reader, ids[1], PB_JOB_ACCEPTED));
    ck_assert(is_stored(reader, ids[2], PB_JOB_RUNNING));
    fini_jobs(writers, 3);
}
END_TEST

START_TEST(locked_file_fails_all_jobs_and_stores_nothing)
{
    struct writer writers[2] = {{.rc = 0}, {.bulk = true}};
    sqlite3 *db = NULL;
    make_job(&writers[0].job, "20260101-000000-0001");
    make_job(&writers[1].job, "20260101-000000-0002");
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    pb_job_store_lock(store);
    start(writers, 2, 0);
    pb_job_store_unlock(store);
    finish(writers, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_lt(writers[i].rc, 0);
        ck_assert_int_eq(writers[i].err.code, PB_E_SERVICE_STATE);
        ck_assert_ptr_nonnull(strstr(writers[i].err.msg, "locked"));
        ck_assert(!is_stored(reader, writers[i].job.id, PB_JOB_ACCEPTED));
    }
    ck_assert_int_eq(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_int_eq(pb_store_offer(store, &writers[0].job, NULL), 0);
    fini_jobs(writers, 2);
}
END_TEST

START_TEST(in_bulk_an_id_that_is_taken_costs_its_job_alone)
{
    struct pb_job jobs[3], *const all[] = {&jobs[0], &jobs[1], &jobs[2]};
    int results[3];
    make_job(&jobs[0], "20260101-000000-0001");
    make_job(&jobs[1], "20260101-000000-0001");
    make_job(&jobs[2], "20260101-000000-0002");
    ck_assert_int_eq(pb_store_offer_all(store, all, 3, results, NULL), 0);
    ck_assert_int_eq(results[0], 0);
    ck_assert_int_eq(results[1], -EEXIST);
    ck_assert_int_eq(results[2], 0);
    ck_assert(is_stored(reader, "20260101-000000-0002", PB_JOB_ACCEPTED));
    for (int i = 0; i < 3; i++)
        pb_job_fini(&jobs[i]);
}
END_TEST

static off_t size_of(const char *suffix)
{
    char name[128];
    struct stat st;
    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    return stat(name, &st) == 0 ? st.st_size : -1;
}

START_TEST(a_checkpoint_lets_the_log_begin_anew)
{
    struct pb_job job;
    char id[PB_JOB_ID_BYTES];
    int n = 0;
    for (; !pb_job_store_log_is_long(store); n++) {
        ck_assert_int_lt(n, 2000);
        (void)snprintf(id, sizeof id, "20260101-000000-%04d", n);
        make_job(&job, id);
        ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
        pb_job_fini(&job);
    }
    off_t log = size_of("-wal");
    ck_assert_int_eq(pb_job_store_checkpoint(store, NULL), 0);
    ck_assert(!pb_job_store_log_is_long(store));
    for (int i = 0; i < 10; i++, n++) {
        (void)snprintf(id, sizeof id, "20260101-000000-%04d", n);
        make_job(&job, id);
        ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
        pb_job_fini(&job);
    }
    ck_assert_int_le(size_of("-wal"), log);
    ck_assert(is_stored(reader, "20260101-000000-0000", PB_JOB_ACCEPTED));
    ck_assert(is_stored(reader, id, PB_JOB_ACCEPTED));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_commit");
    TCase *tests = tcase_create("job_commit");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, what_waits_is_one_transaction);
    tcase_add_test(tests, a_change_is_stored_when_its_call_returns);
    tcase_add_test(tests, a_bulk_change_waits_for_others_but_not_twice);
    tcase_add_test(tests, a_change_that_fails_costs_no_other);
    tcase_add_test(tests, locked_file_fails_all_jobs_and_stores_nothing);
    tcase_add_test(tests, in_bulk_an_id_that_is_taken_costs_its_job_alone);
    tcase_add_test(tests, a_checkpoint_lets_the_log_begin_anew);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
