/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Curves between distributions, in numbers worked out by hand, and their pixels.
 * tests/integration/test_histogram_match.py compares with numpy. */
#include "kernels/reduce/counts.h"
#include "kernels/vm/curve_pixel.h"

#include "any_number.h"
#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct pb_samples bytes = {.first = 0, .n = 256}, any = {.n = 0};

static struct pb_counts counts_of(const struct pb_samples *samples, const float *value, size_t n)
{
    struct pb_threshold *const state = malloc(pb_threshold_bytes(samples));
    struct pb_counts counts = {.n = 0};
    double results[PB_THRESHOLD_N];

    ck_assert_ptr_nonnull(state);
    pb_threshold_begin(state, samples);
    do
        pb_threshold_add(state, value, n);
    while (!pb_threshold_end(state, results));
    ck_assert_int_eq(pb_counts_of(state, &counts), 0);
    free(state);
    return counts;
}

START_TEST(samples_are_counted_and_matched_by_share)
{
    const float from[] = {10, 10, 20, 30, NAN}, to[] = {1, 3, 3, 9};
    struct pb_counts a = counts_of(&bytes, from, 5), b = counts_of(&bytes, to, 4);
    float knots[8] = {0};

    ck_assert_uint_eq(a.n, 3);
    ck_assert(a.value[0] == 10 && a.below[0] == 2 && a.value[2] == 30 && a.below[2] == 4);
    ck_assert_uint_eq(pb_counts_match(&a, &b, knots), 3);
    /* Shares 1/2, 3/4, 1 among 1: 1/4, 3: 3/4, 9: 1. */
    ck_assert(knots[0] == 10 && knots[1] == 2);
    ck_assert(knots[2] == 20 && knots[3] == 3);
    ck_assert(knots[4] == 30 && knots[5] == 9);
    pb_counts_fini(&a);
    pb_counts_fini(&b);
}
END_TEST

START_TEST(without_a_value_there_is_no_curve)
{
    const float from[] = {NAN, INFINITY}, to[] = {1, 3};
    struct pb_counts a = counts_of(&any, from, 2), b = counts_of(&any, to, 2);
    float knots[4];

    ck_assert_uint_eq(a.n, 0);
    ck_assert_uint_eq(pb_counts_match(&a, &b, knots), 0);
    ck_assert_uint_eq(pb_counts_match(&b, &a, knots), 0);
    pb_counts_fini(&a);
    pb_counts_fini(&b);
}
END_TEST

/* The most knots: every second bin has a value. */
START_TEST(knots_of_bins_rise_and_fit)
{
    enum { N = PB_THRESHOLD_COUNTS };
    float *const value = malloc(N / 2 * sizeof *value);
    float *const knots = malloc(2 * (size_t)PB_CURVE_KNOTS_MAX * sizeof *knots);

    ck_assert(value && knots);
    for (int i = 0; i < N / 2; i++)
        value[i] = 2.0f * (float)i + 0.25f;
    struct pb_counts a = counts_of(&any, value, N / 2);
    ck_assert(a.width > 0.0 && a.n == N / 2);
    const uint32_t n = pb_counts_match(&a, &a, knots);
    ck_assert_uint_le(n, PB_CURVE_KNOTS_MAX);
    for (uint32_t i = 1; i < n; i++)
        ck_assert(knots[2 * i] > knots[2 * i - 2] && knots[2 * i + 1] >= knots[2 * i - 1]);
    for (int i = 0; i < N / 2; i++) /* compared with itself: the same values, to a bin */
        ck_assert(fabs((double)(pb_curve_at(knots, (int32_t)n, value[i]) - value[i])) <= a.width);
    pb_counts_fini(&a);
    free(value);
    free(knots);
}
END_TEST

START_TEST(curve_is_exact_at_knots_and_linear_between)
{
    const float knots[] = {1, 10, 2, 20, 4, 0};

    ck_assert(pb_curve_at(knots, 3, 1) == 10 && pb_curve_at(knots, 3, 2) == 20);
    ck_assert(pb_curve_at(knots, 3, 1.5f) == 15 && pb_curve_at(knots, 3, 3) == 10);
    ck_assert(pb_curve_at(knots, 3, -7) == 10 && pb_curve_at(knots, 3, INFINITY) == 0);
    ck_assert(isnan(pb_curve_at(knots, 3, NAN)) && isnan(pb_curve_at(knots, 0, 1)));
    ck_assert(pb_curve_at(knots, 1, 5) == 10 && pb_curve_at(knots, 1, 0) == 10);
}
END_TEST

START_TEST(a_search_finds_the_knots_around_any_value)
{
    float knots[2 * 97];

    for (int i = 0; i < 97; i++) {
        knots[2 * i] = (float)(i * i);
        knots[2 * i + 1] = (float)i;
    }
    for (int32_t n = 2; n <= 97; n++)
        for (int k = 0; k < 50; k++) {
            const float x = (float)(any_number() % 10000);
            const float y = pb_curve_at(knots, n, x), root = sqrtf(x);
            const float low = fminf(floorf(root), (float)(n - 1));

            ck_assert(y >= low && y <= fminf(low + 1, (float)(n - 1)));
        }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("counts");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, samples_are_counted_and_matched_by_share);
    tcase_add_test(tests, without_a_value_there_is_no_curve);
    tcase_add_test(tests, knots_of_bins_rise_and_fit);
    tcase_add_test(tests, curve_is_exact_at_knots_and_linear_between);
    tcase_add_test(tests, a_search_finds_the_knots_around_any_value);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
