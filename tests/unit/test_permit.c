/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Permits to publish, from the worker's line to its answer: with a real store and a real process,
 * which fails with input.damaged if it is permitted to publish, and with output.write if not. */
#include "service/runner/pending.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "run_suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOB "20261121-081530-4f2a"

static char directory[64];
static struct pb_job_store *store;
static uv_loop_t loop;
static struct pb_config config;
static struct pb_troubles troubles;
static struct pb_worker_pool pool;
static struct pb_pending_list list;
static struct pb_job job; /* the stored job, which runs */
static char code[64];     /* error of the run that is over */
static enum pb_run_end end_of_run;
static bool is_over;
static int n_permits;

static int act_worker(void)
{
    static char text[100000];
    (void)printf("\n");
    (void)fflush(stdout);
    while (fgets(text, sizeof text, stdin) != NULL) {
        static const char failed[] = "{\"event\":\"failed\",\"job\":\"" JOB
                                     "\",\"error\":{\"code\":\"%s\",\"message\":\"m\"}}\n";
        if (strstr(text, "\"cmd\":\"run\"") != NULL)
            (void)printf("{\"event\":\"progress\",\"job\":\"" JOB
                         "\",\"stage\":\"publish\",\"tiles_done\":1,\"tiles_total\":1,"
                         "\"bytes_read\":1,\"bytes_written\":1,\"elapsed_ms\":1}\n"
                         "{\"event\":\"permit\",\"job\":\"" JOB "\",\"epoch\":1}\n");
        else if (strstr(text, "\"cancel\"") != NULL)
            (void)printf(failed, "job.dismissed");
        else
            (void)printf(failed,
                         strstr(text, "\"granted\":true") ? "input.damaged" : "output.write");
        (void)fflush(stdout);
    }
    return 0;
}

static void on_news(void *user, int number, const struct pb_job *now, bool at_once)
{
    (void)user, (void)number, (void)now, (void)at_once;
}

static void on_permit(void *user, int number)
{
    (void)user, (void)number;
    n_permits++;
    pb_pending_permit(&list);
}

static void on_start(void *user, int number)
{
    (void)user, (void)number;
}

static void on_over(void *user, int number, struct pb_run_over *over)
{
    (void)user, (void)number;
    (void)snprintf(code, sizeof code, "%s", over->job.error.code);
    end_of_run = over->end;
    is_over = true;
    pb_job_fini(&over->job);
}

static void on_gone(void *user, int number, int pid, bool hung)
{
    (void)user, (void)number, (void)pid, (void)hung;
}

static void on_say(void *user, int pid, enum pb_log_level level, const char *text)
{
    (void)user, (void)pid, (void)level, (void)text;
}

static void on_settled(void *user)
{
    (void)user;
}

static void on_dropped(void *user, const struct pb_job *dropped)
{
    (void)user;
    (void)dropped;
}

static void make_store(void)
{
    char moved[4096];
    struct pb_err err = {0};
    struct pb_job *const jobs[] = {&job};
    int result = -1;
    (void)snprintf(directory, sizeof directory, "/tmp/pb-permit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_msg(pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved,
                                    &store) == 0,
                  "%s", err.msg);
    pb_job_init(&job);
    (void)strcpy(job.id, JOB);
    (void)strcpy(job.pipeline, "p");
    (void)strcpy(job.scene, "s");
    (void)pb_scene_manifest_set_input(&job.manifest, "/in.tif");
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 1), 0);
    ck_assert_int_eq(pb_store_take(store, jobs, 1, &result, NULL), 0);
    ck_assert_int_eq(result, 0);
}

static void setup(void)
{
    struct pb_err err = {0};
    make_store();
    (void)uv_loop_init(&loop);
    config.text = (char *)(uintptr_t) "text";
    config.path = (char *)(uintptr_t) "path";
    config.service.max_attempts = 2;
    pool.owner = (struct pb_worker_slot_owner){.loop = &loop,
                                               .program = {.main = act_worker},
                                               .config = &config,
                                               .on_news = on_news,
                                               .on_permit = on_permit,
                                               .on_start = on_start,
                                               .on_over = on_over,
                                               .on_gone = on_gone,
                                               .on_say = on_say};
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        ck_assert_ptr_nonnull(pool.slots[i].worker = pb_worker_slot_create(&pool.owner, i));
    list = (struct pb_pending_list){.loop = &loop,
                                    .pool = &pool,
                                    .store = store,
                                    .troubles = &troubles,
                                    .on_settled = on_settled,
                                    .on_dropped = on_dropped};
    ck_assert_int_eq(pb_worker_slot_start(pool.slots[3].worker, &err), 0);
}

static void teardown(void)
{
    char command[128];
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        pb_worker_slot_destroy(pool.slots[i].worker);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_int_eq(list.n_works, 0);
    pb_job_fini(&job);
    pb_job_store_close(store);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* Runs the stored job in a slot that is not the first. */
static void run(void)
{
    struct pb_job copy;
    const struct pb_run_how how = {.products = "/p", .permit = true};
    pb_job_init(&copy);
    (void)strcpy(copy.id, job.id);
    (void)strcpy(copy.pipeline, job.pipeline);
    (void)strcpy(copy.scene, job.scene);
    (void)pb_scene_manifest_set_input(&copy.manifest, "/in.tif");
    copy.epoch = job.epoch;
    pb_worker_slot_run(pool.slots[3].worker, &copy, &how);
}

static void until_over(void)
{
    while (!is_over)
        (void)uv_run(&loop, UV_RUN_ONCE);
}

static void until_unanswered(void)
{
    list.permits.failed = false;
    while (!list.permits.failed)
        (void)uv_run(&loop, UV_RUN_ONCE);
}

START_TEST(test_run_of_the_stored_epoch_is_permitted)
{
    run();
    until_over();
    ck_assert_str_eq(code, "input.damaged");
    ck_assert_int_eq(n_permits, 1);
    ck_assert_uint_eq(troubles.n, 0);
}
END_TEST

START_TEST(test_run_of_an_earlier_epoch_is_refused)
{
    struct pb_job *const jobs[] = {&job};
    int result = -1;
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_ACCEPTED, 2), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 3), 0);
    ck_assert_int_eq(pb_store_take(store, jobs, 1, &result, NULL), 0);
    job.epoch--;
    run();
    until_over();
    ck_assert_str_eq(code, "output.write");
    ck_assert_uint_eq(troubles.n, 0);
}
END_TEST

/* A store without a database fails every call. */
START_TEST(test_run_waits_while_the_store_fails)
{
    struct pb_err err = {0};
    struct pb_job_store *lost = NULL;
    ck_assert_int_eq(
        pb_job_store_create(&(struct pb_store_place){.directory = directory}, &err, &lost), 0);
    list.store = lost;
    pb_trouble_raise(&troubles, "jobs", PB_E_SERVICE_STATE, "a change is kept");
    run();
    until_unanswered();
    ck_assert_ptr_nonnull(
        strstr(pb_trouble_find(&troubles, "permits")->text, "job " JOB " has its"));
    ck_assert_str_eq(pb_trouble_find(&troubles, "jobs")->text, "a change is kept");
    for (int i = 0; i < 3; i++) {
        pb_pending_tick(&list, pb_clock_mono_ms() + 60000);
        until_unanswered();
    }
    ck_assert_str_eq(code, "");
    ck_assert(pb_worker_slot_wants_permit(pool.slots[3].worker));
    list.store = store;
    pb_pending_tick(&list, pb_clock_mono_ms() + 60000);
    until_over();
    ck_assert_str_eq(code, "input.damaged");
    ck_assert_int_eq(n_permits, 1);
    ck_assert_ptr_null(pb_trouble_find(&troubles, "permits"));
    ck_assert_uint_eq(troubles.n, 1); /* the other one stays */
    pb_trouble_clear(&troubles, "jobs");
    pb_job_store_close(lost);
}
END_TEST

START_TEST(test_cancelled_run_waits_no_longer)
{
    struct pb_err err = {0};
    struct pb_job_store *lost = NULL;
    ck_assert_int_eq(
        pb_job_store_create(&(struct pb_store_place){.directory = directory}, &err, &lost), 0);
    list.store = lost;
    run();
    until_unanswered();
    pb_worker_slot_end(pool.slots[3].worker, PB_ENDING_CANCEL, 60000);
    until_over();
    ck_assert_int_eq(end_of_run, PB_RUN_ENDED);
    ck_assert_uint_eq(troubles.n, 1);
    pb_pending_tick(&list, pb_clock_mono_ms() + 60000);
    ck_assert_uint_eq(troubles.n, 0);
    ck_assert(!list.permits.failed && !list.permits.works);
    pb_job_store_close(lost);
}
END_TEST

START_TEST(test_drain_ends_a_run_that_gets_no_permit)
{
    struct pb_err err = {0};
    struct pb_job_store *lost = NULL;
    ck_assert_int_eq(
        pb_job_store_create(&(struct pb_store_place){.directory = directory}, &err, &lost), 0);
    list.store = lost;
    run();
    until_unanswered();
    const int64_t now = pb_clock_mono_ms();
    pb_pool_stop(&pool, now, now, false); /* it publishes, and may end by itself */
    ck_assert_int_eq(pb_worker_slot_ending(pool.slots[3].worker), PB_ENDING_NONE);
    pb_pool_stop(&pool, now, now, list.permits.failed);
    ck_assert_int_eq(pb_worker_slot_ending(pool.slots[3].worker), PB_ENDING_PUT_BACK);
    until_over();
    ck_assert_int_eq(end_of_run, PB_RUN_ENDED);
    pb_pending_tick(&list, pb_clock_mono_ms() + 60000);
    ck_assert_uint_eq(troubles.n, 0);
    pb_job_store_close(lost);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("permit");
    TCase *t = tcase_create("permit");
    (void)signal(SIGPIPE, SIG_IGN);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_run_of_the_stored_epoch_is_permitted);
    tcase_add_test(t, test_run_of_an_earlier_epoch_is_refused);
    tcase_add_test(t, test_run_waits_while_the_store_fails);
    tcase_add_test(t, test_cancelled_run_waits_no_longer);
    tcase_add_test(t, test_drain_ends_a_run_that_gets_no_permit);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
