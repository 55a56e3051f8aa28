/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * ctest: threads */
#include "service/runner/pending.h"

#include "config/config.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];
static struct pb_job_store *store;
static uv_loop_t loop;
static pthread_rwlock_t moves = PTHREAD_RWLOCK_INITIALIZER;
static struct pb_config config;
static struct pb_dirs dirs;
static struct pb_runner_env env = {.config = &config};
static struct pb_pending_list list;
static int settled, dropped;

static void count_settled(void *user)
{
    ck_assert_ptr_eq(user, &settled);
    settled++;
}

/* The job is freed afterwards. */
static void count_dropped(void *user, const struct pb_job *job)
{
    ck_assert_ptr_eq(user, &settled);
    ck_assert_str_eq(job->id, "a");
    dropped++;
}

static void make(void)
{
    char moved[PB_FILES_PATH_BYTES];
    struct pb_err err = {0};
    (void)snprintf(directory, sizeof directory, "/tmp/pb-pending-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_msg(pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved,
                                    &store) == 0,
                  "%s", err.msg);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    settled = dropped = 0;
    list = (struct pb_pending_list){.loop = &loop,
                                    .store = store,
                                    .moves = &moves,
                                    .dirs = &dirs,
                                    .env = &env,
                                    .on_settled = count_settled,
                                    .on_dropped = count_dropped,
                                    .user = &settled};
}

static void end(void)
{
    char command[128];
    pb_pending_free(&list, false);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    pb_job_store_close(store);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static struct pb_job take_job(const char *id)
{
    struct pb_job job, *const jobs[] = {&job};
    int result = 1;
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 1), 0);
    ck_assert_int_eq(pb_store_take(store, jobs, 1, &result, NULL), 0);
    ck_assert_int_eq(result, 0);
    return job;
}

/* Stores a job that runs. */
static struct pb_job start_job(const char *id)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    (void)snprintf(job.scene, sizeof job.scene, "%s", id);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    pb_job_fini(&job);
    return take_job(id);
}

static bool lacks_memory;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return lacks_memory ? NULL : __real_malloc(bytes);
}

static void stored_then(void *user, struct pb_pending *pending)
{
    (void)user;
    ck_assert_int_eq(pending->rc, 0);
    pb_pending_settle(pending);
}

static enum pb_job_status status_of(const char *id)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    const enum pb_job_status status = job.status;
    pb_job_fini(&job);
    return status;
}

static void put_back(struct pb_job *job)
{
    ck_assert_int_eq(pb_job_move(job, PB_JOB_ACCEPTED, 2), 0);
    lacks_memory = true;
    struct pb_pending *pending = pb_pending_add_taken(&list, job);
    lacks_memory = false;
    ck_assert_ptr_nonnull(pending);
    pb_pending_work(pending, PB_PENDING_STORE, stored_then, NULL);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(list.n_spare, list.n_reserved);
}

/* A job that stays running would be lost until a restart. */
START_TEST(test_taken_job_is_put_back_without_memory)
{
    struct pb_job a = start_job("a"), b = start_job("b"), waiting;
    pb_job_init(&waiting);
    ck_assert_int_eq(pb_pending_reserve(&list, 2), 0);
    lacks_memory = true;
    const bool unreserved = pb_pending_add(&list, &waiting) != NULL;
    const int more = pb_pending_reserve(&list, 3);
    lacks_memory = false;
    ck_assert(!unreserved);
    ck_assert_int_eq(more, -ENOMEM);
    put_back(&a);
    ck_assert_int_eq(status_of("a"), PB_JOB_ACCEPTED);
    put_back(&b);
    ck_assert_int_eq(status_of("b"), PB_JOB_ACCEPTED);
    a = take_job("a");
    put_back(&a); /* in memory that was used before */
    ck_assert_int_eq(status_of("a"), PB_JOB_ACCEPTED);
}
END_TEST

static void fail_then(void *user, struct pb_pending *pending)
{
    (void)user;
    ck_abort_msg("job %s", pending->job.id);
}

START_TEST(test_dropped_change_wakes_the_queue)
{
    struct pb_job job = start_job("a");
    job.epoch--; /* a run that was given up */
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_ACCEPTED, 2), 0);
    struct pb_pending *pending = pb_pending_add(&list, &job);
    ck_assert_ptr_nonnull(pending);
    pb_pending_work(pending, PB_PENDING_STORE, fail_then, NULL);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(settled, 1);
    ck_assert_int_eq(dropped, 1);
    ck_assert_ptr_null(list.first);
}
END_TEST

/* A waiting job is kept from starting by its change. */
START_TEST(test_refused_change_wakes_the_queue)
{
    struct pb_err err = {0};
    struct pb_job job;
    pb_job_init(&job);
    struct pb_pending *pending = pb_pending_add(&list, &job);
    ck_assert_ptr_nonnull(pending);
    pb_pending_end(pending, pb_fail(&err, PB_E_SERVICE_STATE, "no room"), &err);
    ck_assert_int_eq(settled, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pending");
    TCase *tests = tcase_create("pending");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, test_dropped_change_wakes_the_queue);
    tcase_add_test(tests, test_refused_change_wakes_the_queue);
    tcase_add_test(tests, test_taken_job_is_put_back_without_memory);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
