/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* A run's calls in every order, ended at any moment, with inputs and directories that change under
 * it: it always ends, reports the reason, and leaves either all products or nothing. */
#include "run_fixture.h"

#include "config/config.h"
#include "pipeline/io/file_out.h"

#include "run_suite.h"

#include <pthread.h>
#include <sys/stat.h>

static void must_fail(struct pb_run *run, int rc, const struct pb_err *err, enum pb_code code)
{
    ck_assert_int_lt(rc, 0);
    ck_assert_msg(err->code == code, "%s: %s", pb_code_id(err->code), err->msg);
    pb_run_destroy(run);
    ck_assert_int_le(entries(products), 0);
}

static void publish(struct pb_run *run, struct pb_run_result *result)
{
    struct pb_err err = {0};
    ck_assert_msg(pb_run_start(run, &err) == 0, "%s", err.msg);
    ck_assert_msg(pb_run_wait(run, -1, &err) == 0, "%s", err.msg);
    ck_assert_msg(pb_run_publish(run, &err, result) == 0, "%s", err.msg);
}

START_TEST(publishes_every_product_and_counts_their_bytes)
{
    struct pb_run *run = run_create();
    struct pb_run_progress before, after;
    struct pb_run_result result;
    uint64_t bytes = 0;
    pb_run_progress(run, &before);
    ck_assert_int_eq(before.stage, PB_PHASE_PLAN);
    ck_assert_uint_eq(before.tiles_total, 8 * 5);
    ck_assert_int_eq(before.elapsed_ms, 0);
    publish(run, &result);
    pb_run_progress(run, &after);
    ck_assert_int_eq(after.stage, PB_PHASE_DONE);
    ck_assert_uint_eq(after.tiles_done, 8 * 5);
    ck_assert_uint_eq(result.n_products, 4);
    for (size_t i = 0; i < result.n_products; i++)
        bytes += result.products[i].bytes;
    ck_assert_uint_eq(after.bytes_written, bytes);
    pb_run_destroy(run);
    ck_assert_int_eq(entries(products), 1);
}
END_TEST

START_TEST(calls_out_of_order_are_refused_and_harm_nothing)
{
    struct pb_run_result result;
    struct pb_run *run = run_create();
    for (int i = 0; i < 2; i++) {
        struct pb_err err = {0};
        ck_assert_int_lt(pb_run_wait(run, 0, &err), 0);
        ck_assert_int_eq(err.code, PB_E_SYSTEM);
        memset(&err, 0, sizeof err);
        ck_assert_int_lt(pb_run_publish(run, &err, &result), 0);
        ck_assert_int_eq(err.code, PB_E_SYSTEM);
    }
    struct pb_err err = {0};
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    ck_assert_int_lt(pb_run_start(run, NULL), 0);
    ck_assert_int_lt(pb_run_publish(run, NULL, &result), 0);
    ck_assert_int_eq(pb_run_wait(run, -1, &err), 0);
    ck_assert_int_eq(pb_run_wait(run, -1, &err), 0);
    ck_assert_int_eq(pb_run_publish(run, &err, &result), 0);
    for (int i = 0; i < 5; i++)
        ck_assert_int_lt(pb_run_publish(run, NULL, &result), 0);
    ck_assert_uint_eq(result.n_products, 4);
    pb_run_destroy(run);
    ck_assert_int_eq(entries(products), 1);
    pb_run_destroy(NULL);
}
END_TEST

START_TEST(destroyed_at_any_stage_it_leaves_nothing)
{
    for (int stage = 0; stage < 3; stage++) {
        struct pb_run *run = run_create();
        struct pb_err err = {0};
        if (stage >= 1)
            ck_assert_int_eq(pb_run_start(run, &err), 0);
        if (stage == 2)
            ck_assert_int_eq(pb_run_wait(run, -1, &err), 0);
        pb_run_destroy(run);
        ck_assert_int_eq(entries(products), 0);
    }
}
END_TEST

START_TEST(abort_before_start_or_publish_dismisses_the_run)
{
    struct pb_err err = {0};
    struct pb_run_result result;
    struct pb_run *run = run_create();
    pb_run_abort(run);
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    int rc = pb_run_wait(run, -1, &err);
    ck_assert_int_eq(rc, -ECANCELED);
    must_fail(run, rc, &err, PB_E_JOB_DISMISSED);

    memset(&err, 0, sizeof err);
    run = run_create();
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    ck_assert_int_eq(pb_run_wait(run, -1, &err), 0);
    pb_run_abort(run);
    must_fail(run, pb_run_publish(run, &err, &result), &err, PB_E_JOB_DISMISSED);
}
END_TEST

static void *abort_soon(void *user)
{
    usleep((unsigned)(rand() % 12000));
    pb_run_abort(user);
    return NULL;
}

START_TEST(abort_at_a_random_moment_leaves_all_or_nothing)
{
    for (int i = 0; i < 60; i++) {
        struct pb_run *run = run_create();
        struct pb_run_result result;
        struct pb_err err = {0};
        pthread_t killer;
        ck_assert_int_eq(pthread_create(&killer, NULL, abort_soon, run), 0);
        int rc = pb_run_start(run, &err);
        while (rc == 0 && (rc = pb_run_wait(run, 1, &err)) == -ETIMEDOUT) {
            struct pb_run_progress progress;
            pb_run_progress(run, &progress);
            ck_assert_uint_le(progress.tiles_done, progress.tiles_total);
            rc = 0;
        }
        rc = rc ? rc : pb_run_publish(run, &err, &result);
        pthread_join(killer, NULL);
        ck_assert_msg(rc == 0 || rc == -ECANCELED, "%s", err.msg);
        pb_run_destroy(run);
        ck_assert_int_eq(entries(products), rc == 0 ? 1 : entries(products) > 0);
    }
}
END_TEST

START_TEST(the_first_failure_wins_over_a_later_abort)
{
    struct pb_run *run = run_create();
    struct pb_err err = {0};
    ck_assert_int_eq(truncate(input, 5000), 0);
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    while (pb_run_wait(run, 1, &err) == -ETIMEDOUT)
        ;
    pb_run_abort(run);
    struct pb_err again = {0};
    int rc = pb_run_wait(run, -1, &again);
    ck_assert_str_eq(again.msg, err.msg);
    ck_assert_int_ne(again.code, PB_E_JOB_DISMISSED);
    must_fail(run, rc, &again, PB_E_INPUT_CHANGED);
}
END_TEST

START_TEST(an_input_that_changes_while_it_runs_is_noticed)
{
    struct pb_err err = {0};
    struct pb_run_result result;
    struct pb_run *run = run_create();
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    ck_assert_int_eq(truncate(input, 100000), 0);
    int rc = pb_run_wait(run, -1, &err);
    ck_assert_msg(err.code == PB_E_INPUT_CHANGED || err.code == PB_E_INPUT_TRUNCATED, "%s",
                  err.msg);
    must_fail(run, rc, &err, err.code);

    scene_write(input, 500, 300, 1);
    memset(&err, 0, sizeof err);
    run = run_create();
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    ck_assert_int_eq(pb_run_wait(run, -1, &err), 0);
    ck_assert_int_eq(unlink(input), 0);
    must_fail(run, pb_run_publish(run, &err, &result), &err, PB_E_INPUT_CHANGED);
}
END_TEST

/* rename: a new inode; else the same one with other bytes. */
static void replace_by_wider_pixels(bool by_rename)
{
    char other[128], command[300];
    struct pb_err err = {0};
    scene_write(input, 500, 300, 1);
    struct pb_run *run = run_create();
    snprintf(other, sizeof other, "%s/other.tif", root);
    scene_write(other, 500, 300, 8);
    snprintf(command, sizeof command, "cat %s > %s", other, input);
    ck_assert_int_eq(by_rename ? rename(other, input) : system(command), 0);
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    int rc = pb_run_wait(run, -1, &err);
    must_fail(run, rc, &err, PB_E_INPUT_CHANGED);
}

START_TEST(input_replaced_by_wider_pixels_overflows_no_slot)
{
    replace_by_wider_pixels(true);
    replace_by_wider_pixels(false);
}
END_TEST

START_TEST(impossible_or_lost_products_directory_is_named)
{
    struct pb_run *run = NULL;
    struct pb_err err = {0};
    struct pb_run_result result;
    char command[200];
    struct pb_run_options options = options_of(input);
    options.products = input;
    ck_assert_int_lt(pb_run_create(&options, &err, &run), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
    ck_assert_ptr_nonnull(strstr(err.msg, input));

    memset(&err, 0, sizeof err);
    run = run_create();
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    snprintf(command, sizeof command, "rm -rf %s", products);
    ck_assert_int_eq(system(command), 0);
    int rc = pb_run_wait(run, -1, &err);
    rc = rc ? rc : pb_run_publish(run, &err, &result);
    must_fail(run, rc, &err, PB_E_OUTPUT_WRITE);
}
END_TEST

START_TEST(too_many_threads_are_refused_by_start_and_wait)
{
    char path[128];
    struct pb_run *run = NULL;
    struct pb_err err = {0}, again = {0};
    pb_config_destroy(config);
    config = NULL;
    config_use("");
    config->compute.threads = 600; /* past what the schema takes */
    config->compute.memory_bytes = UINT64_C(8) << 30;
    snprintf(path, sizeof path, "%s/wide.tif", root);
    scene_write(path, 64 * 40, 64 * 20, 1);
    struct pb_run_options options = options_of(path);
    ck_assert_msg(pb_run_create(&options, &err, &run) == 0, "%s", err.msg);
    ck_assert_int_lt(pb_run_start(run, &err), 0);
    ck_assert_int_lt(pb_run_wait(run, -1, &again), 0);
    ck_assert_str_eq(err.msg, again.msg);
    must_fail(run, -1, &err, err.code);
}
END_TEST

/* Stages of one thread never run at the same time. */
START_TEST(threads_of_all_stages_sum_to_the_requested_number)
{
    for (int32_t n = 1; n <= 3; n++) {
        char path[128];
        struct pb_err err = {0};
        struct pb_run *run = NULL;
        struct pb_run_result result;
        pb_config_destroy(config);
        config = NULL;
        config_use("");
        config->compute.threads = n;
        snprintf(path, sizeof path, "%s/t%d.tif", root, (int)n);
        scene_write(path, 64 * 40, 64 * 20, 1);
        struct pb_run_options options = options_of(path);
        ck_assert_msg(pb_run_create(&options, &err, &run) == 0, "%s", err.msg);
        publish(run, &result);
        uint64_t busy = 0;
        for (int i = 0; i < 3; i++)
            busy += result.report.stage[i].busy_ns;
        ck_assert_uint_gt(busy, 0);
        ck_assert_uint_le(busy, ((uint64_t)result.report.elapsed_ms + 1) * 1000000 * (uint64_t)n);
        pb_run_destroy(run);
    }
}
END_TEST

START_TEST(two_runs_at_once_give_what_each_gives_alone)
{
    char names[2][128], sums[2][PB_CHECKSUM_TEXT_BYTES];
    for (int i = 0; i < 2; i++) {
        struct pb_err err = {0};
        struct pb_run *run = NULL;
        struct pb_run_result result;
        snprintf(names[i], sizeof names[i], "%s/s%d.tif", root, i);
        scene_write(names[i], 300 + 200 * (unsigned)i, 200, 1);
        struct pb_run_options options = options_of(names[i]);
        ck_assert_int_eq(pb_run_create(&options, &err, &run), 0);
        publish(run, &result);
        strcpy(sums[i], result.products[0].checksum);
        pb_run_destroy(run);
    }
    struct pb_run *run[2];
    for (int i = 0; i < 2; i++) {
        struct pb_err err = {0};
        struct pb_run_options options = options_of(names[i]);
        ck_assert_int_eq(pb_run_create(&options, &err, &run[i]), 0);
        ck_assert_int_eq(pb_run_start(run[i], &err), 0);
    }
    for (int i = 0; i < 2; i++) {
        struct pb_err err = {0};
        struct pb_run_result result;
        ck_assert_int_eq(pb_run_wait(run[i], -1, &err), 0);
        ck_assert_int_eq(pb_run_publish(run[i], &err, &result), 0);
        ck_assert_str_eq(result.products[0].checksum, sums[i]);
        pb_run_destroy(run[i]);
    }
}
END_TEST

START_TEST(neither_descriptors_nor_threads_are_left_behind)
{
    int fds = 0, threads = 0;
    for (int i = 0; i < 6; i++) {
        struct pb_run *run = run_create();
        struct pb_run_result result;
        if (i % 2 == 0)
            publish(run, &result);
        else
            (void)pb_run_start(run, NULL);
        pb_run_destroy(run);
        if (i == 1) { /* libraries have opened what they keep */
            fds = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
    }
    ck_assert_int_eq(entries("/proc/self/fd"), fds);
    ck_assert_int_le(entries("/proc/self/task"), threads);
}
END_TEST

START_TEST(a_file_whose_run_was_stopped_is_not_written_on)
{
    char path[128], sum[PB_CHECKSUM_TEXT_BYTES];
    struct pb_err err = {0};
    struct pb_file_out *file = NULL;
    struct pb_file_progress progress = {0};
    snprintf(path, sizeof path, "%s/file", root);
    ck_assert_int_eq(pb_file_out_create(path, PB_CHECKSUM_SHA2_256, &err, &file), 0);
    pb_file_out_watch(file, &progress);
    ck_assert_int_eq(pb_file_out_add(file, "abc", 3, &err), 0);
    atomic_store(&progress.stop, true);
    ck_assert_int_eq(pb_file_out_finish(file, &err, sum), -ECANCELED);
    ck_assert_int_eq(err.code, PB_E_JOB_DISMISSED);
    pb_file_out_destroy(file);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run");
    TCase *tc = tcase_create("run");
    tcase_add_checked_fixture(tc, run_setup, run_teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, publishes_every_product_and_counts_their_bytes);
    tcase_add_test(tc, calls_out_of_order_are_refused_and_harm_nothing);
    tcase_add_test(tc, destroyed_at_any_stage_it_leaves_nothing);
    tcase_add_test(tc, abort_before_start_or_publish_dismisses_the_run);
    tcase_add_test(tc, abort_at_a_random_moment_leaves_all_or_nothing);
    tcase_add_test(tc, the_first_failure_wins_over_a_later_abort);
    tcase_add_test(tc, an_input_that_changes_while_it_runs_is_noticed);
    tcase_add_test(tc, input_replaced_by_wider_pixels_overflows_no_slot);
    tcase_add_test(tc, impossible_or_lost_products_directory_is_named);
    tcase_add_test(tc, too_many_threads_are_refused_by_start_and_wait);
    tcase_add_test(tc, threads_of_all_stages_sum_to_the_requested_number);
    tcase_add_test(tc, two_runs_at_once_give_what_each_gives_alone);
    tcase_add_test(tc, neither_descriptors_nor_threads_are_left_behind);
    tcase_add_test(tc, a_file_whose_run_was_stopped_is_not_written_on);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
