/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Figures of wic/apps: shares of waiting, overhead, the rule of headroom, means. */
#include "wic/apps/pair/pair_figures.h"

#include "run_suite.h"

#include <check.h>

#define near(a, b) ck_assert_double_eq_tol(a, b, 1e-12)

START_TEST(test_wait_is_time_above_oracle)
{
    near(app_exposed_wait(10.0, 8.0), 0.2);
    near(app_exposed_wait(8.0, 8.0), 0.0);
    near(app_exposed_wait(7.9, 8.0), 0.0); /* noise */
}
END_TEST

START_TEST(test_overlap_is_hidden_part_of_producer)
{
    near(app_overlap(8.0, 8.0, 5.0), 1.0);
    near(app_overlap(9.0, 8.0, 5.0), 0.8);
    near(app_overlap(13.0, 8.0, 5.0), 0.0);
    near(app_overlap(15.5, 8.0, 5.0), -0.5);
    near(app_overlap(7.0, 8.0, 5.0), 1.0);
    ck_assert(isnan(app_overlap(9.0, 8.0, 0.0)));
}
END_TEST

START_TEST(test_overhead_begins_when_data_and_block_are_ready)
{
    const struct app_stamps steps[] = {
        {100, 140, 120, 145, 200}, /* data first: 5 of 100 after C1 */
        {200, 220, 260, 275, 300}, /* C1 first: 15 of 100 after the data */
        {300, 350, 380, 370, 400}, /* a block that reads a chunk before the last one is stamped */
    };
    near(app_overhead(steps, 1), 0.05);
    near(app_overhead(steps, 2), 0.1);
    near(app_overhead(steps, 3), 20.0 / 300.0);
    near(app_overhead(steps, 0), 0.0);
}
END_TEST

START_TEST(test_geometric_mean_of_ratios)
{
    const double ratio[] = {2.0, 0.5, 8.0};
    near(app_geometric_mean(ratio, 1), 2.0);
    near(app_geometric_mean(ratio, 2), 1.0);
    near(app_geometric_mean(ratio, 3), 2.0);
}
END_TEST

START_TEST(test_trials_end_with_the_fastest_shape)
{
    const double time[] = {10.0, 30.0, 9.0, 11.0};
    const size_t wanted[] = {0, 1, 2, 3, 0, 2, 3}; /* shape 1 is too slow for a second trial */
    struct app_trials trials = {.shapes = 4};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        ck_assert(!app_trials_end(&trials));
        const size_t shape = app_trials_next(&trials);
        ck_assert_uint_eq(shape, wanted[i]);
        app_trials_add(&trials, shape, shape == 3 && i > 4 ? 8.0 : time[shape]);
    }
    ck_assert(app_trials_end(&trials));
    ck_assert_uint_eq(app_trials_next(&trials), 3); /* its second time counts */
    app_trials_add(&trials, 3, 50.0);
    ck_assert_uint_eq(app_trials_next(&trials), 3); /* later times are noise */
}
END_TEST

START_TEST(test_single_shape_needs_no_trials)
{
    struct app_trials trials = {.shapes = 1};
    ck_assert(app_trials_end(&trials));
    ck_assert_uint_eq(app_trials_next(&trials), 0);
}
END_TEST

START_TEST(test_half_of_headroom_is_enough)
{
    near(app_headroom(8.0, 10.0), 0.2);
    ck_assert_int_eq(app_judge(9.0, 8.0, 10.0, 0.02), APP_TAKES_HEADROOM);
    ck_assert_int_eq(app_judge(9.01, 8.0, 10.0, 0.02), APP_MISSES_HEADROOM);
    ck_assert_int_eq(app_judge(9.75, 9.5, 10.0, 0.02), APP_TAKES_HEADROOM); /* 5 % */
}
END_TEST

START_TEST(test_small_headroom_allows_three_per_cent)
{
    ck_assert_int_eq(app_judge(10.2, 9.6, 10.0, 0.02), APP_NOTHING_TO_WIN);
    ck_assert_int_eq(app_judge(10.4, 9.6, 10.0, 0.02), APP_NOTHING_BUT_SLOWER);
    near(app_headroom(10.0, 9.9), 0.0);
}
END_TEST

START_TEST(test_oracle_may_be_beaten_by_noise_only)
{
    ck_assert_int_eq(app_judge(9.9, 10.0, 9.9, 0.02), APP_NOTHING_TO_WIN);
    ck_assert_int_eq(app_judge(9.7, 10.0, 10.1, 0.02), APP_ORACLE_IS_BEATEN);
    ck_assert_int_eq(app_judge(10.1, 10.0, 9.7, 0.02), APP_ORACLE_IS_BEATEN);
}
END_TEST

START_TEST(test_bar_needs_mean_and_every_row)
{
    struct pair_case cases[] = {{10.0, 6.0, 12.0, {12.0, 12.0, 12.0}},
                                {10.0, 6.0, 11.0, {11.0, 12.0, 13.0}}};
    near(pair_mean(cases, 2, 0), sqrt(1.2 * 1.1));
    near(pair_mean(cases, 2, 1), 1.2);
    near(pair_mean(cases, 2, -1), pow(1.2 * 1.2 * 1.2 * 1.1 * 1.2 * 1.3, 1.0 / 6.0));
    ck_assert(pair_bar_is_met(cases, 2));
    cases[0].rival[2] = 9.0; /* the mean is below the bar */
    ck_assert(!pair_bar_is_met(cases, 2));
    cases[0].rival[2] = 12.0;
    cases[1].best = 9.9; /* slower than another rival */
    ck_assert(!pair_is_won(&cases[1]));
    ck_assert(!pair_bar_is_met(cases, 2));
    cases[1].oracle = 9.8; /* but there is nothing to win */
    ck_assert(pair_bar_is_met(cases, 2));
}
END_TEST

START_TEST(test_bar_is_not_met_by_what_was_not_measured)
{
    struct pair_case one = {10.0, 6.0, 15.0, {15.0, 0.0, 15.0}};
    near(pair_mean(&one, 1, -1), 1.5);
    near(pair_mean(&one, 1, 1), 0.0);
    ck_assert(!pair_bar_is_met(&one, 1));
    ck_assert(!pair_bar_is_met(&one, 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_figures");
    TCase *tc = tcase_create("figures");
    tcase_add_test(tc, test_wait_is_time_above_oracle);
    tcase_add_test(tc, test_overlap_is_hidden_part_of_producer);
    tcase_add_test(tc, test_overhead_begins_when_data_and_block_are_ready);
    tcase_add_test(tc, test_geometric_mean_of_ratios);
    tcase_add_test(tc, test_trials_end_with_the_fastest_shape);
    tcase_add_test(tc, test_single_shape_needs_no_trials);
    tcase_add_test(tc, test_half_of_headroom_is_enough);
    tcase_add_test(tc, test_small_headroom_allows_three_per_cent);
    tcase_add_test(tc, test_oracle_may_be_beaten_by_noise_only);
    tcase_add_test(tc, test_bar_needs_mean_and_every_row);
    tcase_add_test(tc, test_bar_is_not_met_by_what_was_not_measured);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
