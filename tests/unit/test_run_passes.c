/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Runs whose steps need numbers of the whole image, or all of it: passes before the one that makes
 * the products, seen from outside and ended at any moment. */
#include "run_fixture.h"

#include "run_suite.h"

#include <pthread.h>

enum { TILES = 8 * 5 };

/* Rounds of the pass before: 2 for values, 1 for bands. */
static const char STRETCHES[] = "      - math: {bands: {S: 'A + B'}}\n"
                                "      - stretch: {bands: [S, A]}\n"
                                "      - stretch: {bands: [S], method: stddev, beyond: keep}\n";
/* Two levels of whole images, with numbers that take two rounds. */
static const char SIEVES[] = "      - math: {bands: {S: '(A > 100) + (B > 40)', T: 'A + B'}}\n"
                             "      - sieve: {bands: [S, A], size: 3}\n"
                             "      - stretch: {bands: [T]}\n"
                             "      - sieve: {bands: [S], size: 9, connectivity: 8}\n";
static const char NOTHING_VALID[] = "      - math: {bands: {S: 'A / 0'}}\n"
                                    "      - stretch: {bands: [S]}\n";

/* Runs to the end; the total never changes and what is done never falls. Returns the total. */
static uint32_t watch(const char *steps)
{
    struct pb_run_progress first, last, now;
    struct pb_run_result result;
    struct pb_err err = {0};
    config_use_steps("", steps);
    struct pb_run *run = run_create();
    pb_run_progress(run, &first);
    last = first;
    int rc = pb_run_start(run, &err);
    while (rc == 0 && (rc = pb_run_wait(run, 1, &err)) == -ETIMEDOUT) {
        pb_run_progress(run, &now);
        ck_assert_uint_eq(now.tiles_total, first.tiles_total);
        ck_assert_uint_ge(now.tiles_done, last.tiles_done);
        ck_assert_uint_ge(now.bytes_read, last.bytes_read);
        last = now;
        rc = 0;
    }
    ck_assert_msg(rc == 0, "%s", err.msg);
    ck_assert_int_eq(pb_run_wait(run, -1, &err), 0); /* a second wait */
    pb_run_progress(run, &now);
    ck_assert_uint_eq(now.tiles_total, first.tiles_total);
    ck_assert_uint_eq(now.tiles_done, now.tiles_total);
    ck_assert_int_eq(pb_run_publish(run, &err, &result), 0);
    pb_run_destroy(run);
    return first.tiles_total;
}

START_TEST(progress_goes_through_all_passes)
{
    ck_assert_uint_eq(watch(STRETCHES), TILES * 4); /* two rounds, a second level, the products */
    ck_assert_uint_eq(watch("      - stretch: {bands: {S: A}}\n"), TILES * 2);
}
END_TEST

/* Cells are as large as the tiles here, and are sieved in two rounds. */
START_TEST(progress_goes_through_what_is_sieved)
{
    ck_assert_uint_eq(watch("      - sieve: {bands: {S: A}, size: 5}\n"), TILES * (2 + 2));
    ck_assert_uint_eq(watch(SIEVES), TILES * (2 + 1 + 1 + 3 * 2));
}
END_TEST

START_TEST(a_round_that_is_not_needed_counts_as_done)
{
    ck_assert_uint_eq(watch(NOTHING_VALID), TILES * 3);
}
END_TEST

START_TEST(what_no_product_needs_takes_no_pass)
{
    ck_assert_uint_eq(watch("      - math: {bands: {S: 'A + B'}}\n"
                            "      - stretch: {bands: {T: S}}\n"
                            "      - scale: {bands: {T: S}, factor: 2}\n"),
                      TILES);
}
END_TEST

static void *abort_soon(void *user)
{
    usleep((unsigned)(rand() % 12000));
    pb_run_abort(user);
    return NULL;
}

START_TEST(aborted_in_any_pass_it_ends_with_all_or_nothing)
{
    config_use_steps("", _i == 0 ? STRETCHES : SIEVES);
    for (int i = 0; i < 40; i++) {
        struct pb_run *run = run_create();
        struct pb_run_result result;
        struct pb_err err = {0};
        pthread_t killer;
        ck_assert_int_eq(pthread_create(&killer, NULL, abort_soon, run), 0);
        int rc = pb_run_start(run, &err);
        rc = rc ? rc : pb_run_wait(run, -1, &err);
        rc = rc ? rc : pb_run_publish(run, &err, &result);
        pthread_join(killer, NULL);
        ck_assert_msg(rc == 0 || rc == -ECANCELED, "%s", err.msg);
        pb_run_destroy(run);
    }
}
END_TEST

START_TEST(file_truncated_in_a_later_pass_publishes_nothing)
{
    struct pb_run_progress now;
    struct pb_err err = {0};
    config_use_steps("", STRETCHES);
    struct pb_run *run = run_create();
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    int rc = -ETIMEDOUT;
    for (now.tiles_done = 0; rc == -ETIMEDOUT && now.tiles_done <= TILES;) {
        rc = pb_run_wait(run, 0, &err);
        pb_run_progress(run, &now);
    }
    ck_assert_int_eq(truncate(input, 5000), 0);
    while (rc == -ETIMEDOUT)
        rc = pb_run_wait(run, 1, &err);
    struct pb_err again = {0};
    int second = pb_run_wait(run, -1, &again);
    if (rc == 0) { /* it was computed by then */
        struct pb_run_result result;
        ck_assert_int_lt(pb_run_publish(run, &err, &result), 0);
    } else {
        ck_assert_int_eq(second, rc);
    }
    ck_assert_int_eq(err.code, PB_E_INPUT_CHANGED);
    pb_run_destroy(run);
    ck_assert_int_le(entries(products), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run passes");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, run_setup, run_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, progress_goes_through_all_passes);
    tcase_add_test(tc, progress_goes_through_what_is_sieved);
    tcase_add_test(tc, a_round_that_is_not_needed_counts_as_done);
    tcase_add_test(tc, what_no_product_needs_takes_no_pass);
    tcase_add_loop_test(tc, aborted_in_any_pass_it_ends_with_all_or_nothing, 0, 2);
    tcase_add_test(tc, file_truncated_in_a_later_pass_publishes_nothing);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
