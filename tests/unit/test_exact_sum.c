/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "kernels/reduce/exact_sum.h"

#include "any_number.h"
#include "run_suite.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Any finite double, all exponents alike. */
static double any_double(void)
{
    double x;
    do {
        uint64_t bits = any_bits();
        memcpy(&x, &bits, sizeof x);
    } while (!isfinite(x));
    return x;
}

static double sum_of(const double *x, size_t n)
{
    struct pb_exact_sum sum;
    pb_exact_sum_init(&sum);
    for (size_t i = 0; i < n; i++)
        pb_exact_sum_add(&sum, x[i]);
    return pb_exact_sum_round(&sum);
}

static void assert_same(double a, double b)
{
    ck_assert_msg(memcmp(&a, &b, sizeof a) == 0, "%.17g is not %.17g", a, b);
}

START_TEST(empty_sum_is_zero)
{
    assert_same(sum_of(NULL, 0), 0.0);
}
END_TEST

START_TEST(one_number_comes_back_as_it_is)
{
    const double edge[] = {0.0,      1.0,      -1.0,       DBL_MAX,     -DBL_MAX,
                           DBL_MIN,  -DBL_MIN, 0x1p-1074,  -0x1p-1074,  0x1.fffffffffffffp-1023,
                           0x1p1023, 0x1p31,   0x1p32 + 1, -0x1.8p-1042};
    for (size_t i = 0; i < sizeof edge / sizeof *edge; i++)
        assert_same(sum_of(&edge[i], 1), edge[i]);
    for (int i = 0; i < 100000; i++) {
        double x = any_double();
        if (x != 0)
            assert_same(sum_of(&x, 1), x);
    }
}
END_TEST

START_TEST(large_terms_cancel_and_leave_the_small_one)
{
    const double x[] = {DBL_MAX, 0x1p-1074, DBL_MAX, -DBL_MAX, -DBL_MAX};
    assert_same(sum_of(x, 5), 0x1p-1074);
    const double y[] = {1e300, 1.0, -1e300, -3.0};
    assert_same(sum_of(y, 4), -2.0);
}
END_TEST

START_TEST(rounds_to_nearest_with_ties_to_even)
{
    const double up[] = {1.0, 0x1p-53, 0x1p-1074};
    assert_same(sum_of(up, 3), 1.0 + 0x1p-52);
    const double tie[] = {1.0, 0x1p-53};
    assert_same(sum_of(tie, 2), 1.0);
    const double odd[] = {1.0 + 0x1p-52, 0x1p-53};
    assert_same(sum_of(odd, 2), 1.0 + 0x1p-51);
    const double below[] = {-1.0, -0x1p-53, 0x1p-1074};
    assert_same(sum_of(below, 3), -1.0);
    const double grow[] = {0x1.fffffffffffffp0, 0x1p-53};
    assert_same(sum_of(grow, 2), 2.0);
}
END_TEST

START_TEST(sum_beyond_the_range_is_infinite)
{
    const double x[] = {DBL_MAX, DBL_MAX};
    ck_assert(isinf(sum_of(x, 2)));
    const double y[] = {-DBL_MAX, -DBL_MAX};
    ck_assert(sum_of(y, 2) == -INFINITY);
}
END_TEST

/* Two doubles: the FPU's own sum is correctly rounded. */
START_TEST(agrees_with_the_fpu_on_pairs)
{
    for (int i = 0; i < 200000; i++) {
        double x[2] = {any_double(), 0};
        int e;
        (void)frexp(x[0], &e);
        x[1] = ldexp((double)(int64_t)any_bits(), e - 10 - (int)(any_bits() % 120));
        if (!isfinite(x[1]))
            continue;
        double fpu = x[0] + x[1];
        if (fpu != 0)
            assert_same(sum_of(x, 2), fpu);
    }
}
END_TEST

START_TEST(result_does_not_depend_on_order_or_splits)
{
    enum { N = 3000 };
    static double x[N];
    for (int i = 0; i < N; i++)
        x[i] = i % 3 ? any_double() * 0x1p-20
                     : ldexp((double)(int64_t)any_bits(), (int)(any_bits() % 200));
    double expected = sum_of(x, N);
    for (int round = 0; round < 50; round++) {
        for (int i = N - 1; i > 0; i--) {
            int j = (int)(any_bits() % (uint64_t)(i + 1));
            double t = x[i];
            x[i] = x[j];
            x[j] = t;
        }
        assert_same(sum_of(x, N), expected);
        struct pb_exact_sum part[5];
        for (int p = 0; p < 5; p++)
            pb_exact_sum_init(&part[p]);
        for (int i = 0; i < N; i++)
            pb_exact_sum_add(&part[any_bits() % 5], x[i]);
        for (int p = 1; p < 5; p++)
            pb_exact_sum_merge(&part[0], &part[p]);
        assert_same(pb_exact_sum_round(&part[0]), expected);
    }
}
END_TEST

/* Integers have an exact sum to compare with; the count passes the point where carries are due. */
START_TEST(carries_do_not_overflow)
{
    struct pb_exact_sum sum;
    pb_exact_sum_init(&sum);
    double big = 0x1.fffffffffffffp52;
    pb_exact_sum_add(&sum, -1.0);
    for (int doubling = 0; doubling < 62; doubling++) {
        struct pb_exact_sum copy = sum;
        pb_exact_sum_merge(&sum, &copy);
    }
    assert_same(pb_exact_sum_round(&sum), -0x1p62);
    sum.pending = (UINT32_C(1) << 29) - 3;
    for (int i = 0; i < 8; i++)
        pb_exact_sum_add(&sum, big);
    ck_assert_uint_lt(sum.pending, 10); /* propagated on the way */
    pb_exact_sum_add(&sum, 0x1p62);
    assert_same(pb_exact_sum_round(&sum), 8 * big);
}
END_TEST

START_TEST(two_doubles_hold_what_one_cannot)
{
    struct pb_exact_sum sum;
    pb_exact_sum_init(&sum);
    pb_exact_sum_add(&sum, 1.0);
    pb_exact_sum_add(&sum, 0x1p-80);
    struct pb_double2 d = pb_exact_sum_double2(&sum);
    assert_same(d.high, 1.0);
    assert_same(d.low, 0x1p-80);
}
END_TEST

START_TEST(variance_survives_a_large_mean)
{
    struct pb_exact_sum sum, squares;
    pb_exact_sum_init(&sum);
    pb_exact_sum_init(&squares);
    /* 10^7 and 10^7 + 1 by turns: variance 1/4, which plain doubles lose for many pixels */
    uint64_t n = 2000000;
    for (uint64_t i = 0; i < n; i++) {
        double x = 1e7 + (double)(i % 2);
        pb_exact_sum_add(&sum, x);
        pb_exact_sum_add(&squares, x * x);
    }
    double mean, variance;
    pb_exact_moments(&sum, &squares, n, &mean, &variance);
    assert_same(mean, 1e7 + 0.5);
    assert_same(variance, 0.25);
}
END_TEST

START_TEST(variance_of_a_constant_is_zero)
{
    struct pb_exact_sum sum, squares;
    pb_exact_sum_init(&sum);
    pb_exact_sum_init(&squares);
    double x = (double)0.1f;
    for (int i = 0; i < 12345; i++) {
        pb_exact_sum_add(&sum, x);
        pb_exact_sum_add(&squares, x * x);
    }
    double mean, variance;
    pb_exact_moments(&sum, &squares, 12345, &mean, &variance);
    assert_same(mean, x);
    ck_assert(sqrt(variance) < 1e-15);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exact_sum");
    TCase *tc = tcase_create("exact_sum");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, empty_sum_is_zero);
    tcase_add_test(tc, one_number_comes_back_as_it_is);
    tcase_add_test(tc, large_terms_cancel_and_leave_the_small_one);
    tcase_add_test(tc, rounds_to_nearest_with_ties_to_even);
    tcase_add_test(tc, sum_beyond_the_range_is_infinite);
    tcase_add_test(tc, agrees_with_the_fpu_on_pairs);
    tcase_add_test(tc, result_does_not_depend_on_order_or_splits);
    tcase_add_test(tc, carries_do_not_overflow);
    tcase_add_test(tc, two_doubles_hold_what_one_cannot);
    tcase_add_test(tc, variance_survives_a_large_mean);
    tcase_add_test(tc, variance_of_a_constant_is_zero);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
