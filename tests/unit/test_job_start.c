/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * ctest: threads */
#include "service/runner/job_start.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "pipelines:\n"
    "  bulk:\n"
    "    priority: -10\n"
    "    input: {group: '(?<scene>s\\d)_R.tif', files: {R: '{scene}_R.tif'}}\n"
    "    products: [statistics: {}]\n"
    "  urgent:\n"
    "    priority: 5\n"
    "    input: {match: ['u*']}\n"
    "    products: [statistics: {}]\n"
    "  folders:\n"
    "    priority: 2\n"
    "    input: {scene: 'u?_SAFE', files: {R: 'B04.tif'}}\n"
    "    products: [statistics: {}]\n"
    "  rest:\n"
    "    input: {match: ['r*']}\n"
    "    products: [statistics: {}]\n";

static struct pb_config *parse(void)
{
    struct pb_err_list errors = {0};
    struct pb_config *config = NULL;
    ck_assert_msg(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config) == 0,
                  "%s", errors.err[0].msg);
    return config;
}

START_TEST(job_of_unknown_pipeline_starts_last)
{
    static const struct {
        const char *name, *pipeline;
        bool owned;
        int64_t rank;
    } cases[] = {
        {"u1.tif", "urgent", true, 0}, {"r1.tif", "rest", true, 5},
        {"s1", "bulk", true, 15},      {"u1.tif", "gone", true, 0},
        {"r1.tif", "gone", true, 5},   {"u1_SAFE", "gone", true, 3}, /* a folder, probably */
        {"s1", "gone", true, 15},      {"s1", "", true, 15},
        {"u1.tif", "gone", false, 15},
    };
    struct pb_config *config = parse();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_job job;
        pb_job_init(&job);
        job.owned = cases[i].owned;
        (void)snprintf(job.name, sizeof job.name, "%s", cases[i].name);
        (void)snprintf(job.pipeline, sizeof job.pipeline, "%s", cases[i].pipeline);
        const int64_t rank = pb_job_start_rank(config, &job);
        ck_assert_msg(rank == cases[i].rank, "%zu: %lld", i, (long long)rank);
        pb_job_fini(&job);
    }
    pb_config_destroy(config);
}
END_TEST

/* --- starts with a store, without a worker ---------------------------------------------------- */

static char directory[64];
static struct pb_job_store *store;
static uv_loop_t loop;
static pthread_rwlock_t moves = PTHREAD_RWLOCK_INITIALIZER;
static struct pb_dirs dirs;
static struct pb_metrics metrics;
static struct pb_runner_env env;
static struct pb_pending_list list;
static struct pb_faults faults;
static struct pb_job_ends ends;
static struct pb_job_starts starts;
static struct pb_pool_slot slot;

static void ignore_job(void *user, const struct pb_job *job)
{
    (void)user;
    (void)job;
}

static void ignore(void *user)
{
    (void)user;
}

static void make(void)
{
    char moved[PB_FILES_PATH_BYTES];
    struct pb_err err = {0};
    (void)snprintf(directory, sizeof directory, "/tmp/pb-start-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_msg(pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved,
                                    &store) == 0,
                  "%s", err.msg);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    env = (struct pb_runner_env){.config = parse(),
                                 .node = "",
                                 .metrics = &metrics,
                                 .on_change = ignore_job,
                                 .on_hold = ignore_job};
    list = (struct pb_pending_list){.loop = &loop,
                                    .store = store,
                                    .moves = &moves,
                                    .dirs = &dirs,
                                    .env = &env,
                                    .on_settled = ignore,
                                    .on_kept = ignore,
                                    .on_dropped = ignore_job};
    faults = (struct pb_faults){.env = &env, .on_freed = ignore};
    ends = (struct pb_job_ends){.env = &env, .pending = &list, .faults = &faults};
    starts =
        (struct pb_job_starts){.env = &env, .pending = &list, .faults = &faults, .ends = &ends};
    slot = (struct pb_pool_slot){.reserved = true};
    ck_assert_int_eq(pb_pending_reserve(&list, 1), 0);
}

static void end(void)
{
    char command[128];
    pb_pending_free(&list, false);
    pb_faults_fini(&faults);
    pb_config_destroy((struct pb_config *)env.config);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    pb_job_store_close(store);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static struct pb_job find(void)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, "a", NULL, &job), 0);
    return job;
}

static struct pb_taken take_again(void)
{
    struct pb_taken taken = {.job = find()};
    struct pb_job *const jobs[] = {&taken.job};
    int result = 1;
    pb_job_start_match(env.config, &taken);
    ck_assert_int_eq(pb_job_move(&taken.job, PB_JOB_RUNNING, 1), 0);
    ck_assert_int_eq(pb_store_take(store, jobs, 1, &result, NULL), 0);
    ck_assert_int_eq(result, 0);
    return taken;
}

/* Stores and takes a job of that pipeline and input; NULL: it has no input. */
static struct pb_taken take(const char *pipeline, const char *input)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "a");
    (void)snprintf(job.name, sizeof job.name, "u1.tif");
    (void)snprintf(job.scene, sizeof job.scene, "u1");
    (void)snprintf(job.pipeline, sizeof job.pipeline, "%s", pipeline);
    job.owned = input != NULL;
    if (input != NULL)
        ck_assert_int_eq(pb_job_set(&job.manifest.input, input), 0);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    pb_job_fini(&job);
    return take_again();
}

static void check_waits(const char *code)
{
    struct pb_job job;
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert(!slot.reserved);
    job = find();
    ck_assert_int_eq(job.status, PB_JOB_ACCEPTED);
    ck_assert_int_eq(job.attempts, 0);
    ck_assert_str_eq(job.error.code, code);
    pb_job_fini(&job);
}

static void hold_queue(void)
{
    const struct pb_hold_fault fault = {.started_ms = 1, .code = PB_E_MEMORY};
    (void)pb_hold_fault(&faults.hold, &fault, pb_clock_mono_ms());
    faults.hold.until_ms = INT64_MAX;
}

START_TEST(test_hold_during_a_take_puts_its_jobs_back)
{
    struct pb_taken taken = take("urgent", NULL);
    hold_queue();
    pb_job_start(&starts, &slot, &taken, env.config);
    check_waits("");
}
END_TEST

START_TEST(test_hold_during_a_start_puts_its_job_back)
{
    struct pb_taken taken = take("urgent", NULL);
    taken.ran = true; /* its products are searched for on the pool */
    pb_job_start(&starts, &slot, &taken, env.config);
    hold_queue();
    check_waits("");
}
END_TEST

/* The name of the input has a loop of symbolic links. */
START_TEST(test_unreachable_input_concerns_its_job_alone)
{
    char link[80], input[96];
    (void)snprintf(link, sizeof link, "%s/loop", directory);
    (void)snprintf(input, sizeof input, "%s/u1.tif", link);
    ck_assert_int_eq(symlink("loop", link), 0);
    struct pb_taken taken = take("", input);
    pb_job_start(&starts, &slot, &taken, env.config);
    check_waits("input.io");
    ck_assert_uint_eq(faults.hold.n_setbacks, 1);
    ck_assert_int_eq(faults.hold.setbacks[0].alone, 0);
    pb_hold_success(&faults.hold, 100, pb_clock_mono_ms()); /* another job succeeds */
    taken = take_again();
    slot.reserved = true;
    pb_job_start(&starts, &slot, &taken, env.config);
    check_waits("input.io");
    ck_assert_int_eq(faults.hold.setbacks[0].alone, 1);
    ck_assert(!faults.hold.on);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_start");
    TCase *tests = tcase_create("job_start");
    TCase *stored = tcase_create("stored");
    tcase_add_test(tests, job_of_unknown_pipeline_starts_last);
    tcase_add_checked_fixture(stored, make, end);
    tcase_add_test(stored, test_hold_during_a_take_puts_its_jobs_back);
    tcase_add_test(stored, test_hold_during_a_start_puts_its_job_back);
    tcase_add_test(stored, test_unreachable_input_concerns_its_job_alone);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, stored);
    return run_suite(suite);
}
