/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/profile/spans.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct pb_spans spans;

static void make(void)
{
    memset(&spans, 0, sizeof spans);
}

START_TEST(time_that_spans_share_counts_once)
{
    pb_spans_add(&spans, 10, 20);
    pb_spans_add(&spans, 30, 40);
    pb_spans_add(&spans, 15, 32);
    pb_spans_add(&spans, 12, 13);
    pb_spans_add(&spans, 50, 50);
    ck_assert_uint_eq(pb_spans_covered(&spans), 30);
    ck_assert_uint_eq(spans.n, 1);
}
END_TEST

/* Compares with a list of every unit of time. */
START_TEST(nearly_sorted_spans_give_the_covered_time)
{
    enum { UNITS = 40000, SPANS = 3000, LATE = 300 };
    static unsigned char covered[UNITS];
    unsigned seed = 7;
    uint64_t n = 0;
    for (int i = 0; i < SPANS; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint64_t from = (uint64_t)i * 12 + (seed >> 8) % LATE, to = from + (seed >> 20) % 40;
        pb_spans_add(&spans, from, to);
        memset(covered + from, 1, to - from);
    }
    for (int i = 0; i < UNITS; i++)
        n += covered[i];
    ck_assert_uint_eq(pb_spans_covered(&spans), n);
}
END_TEST

START_TEST(spans_that_do_not_touch_may_be_many)
{
    for (uint64_t i = 0; i < 10000; i++)
        pb_spans_add(&spans, 10 * i, 10 * i + 3);
    ck_assert_uint_eq(pb_spans_covered(&spans), 30000);
    pb_spans_add(&spans, 0, 50000); /* a time that is closed */
    ck_assert_uint_eq(pb_spans_covered(&spans), 30000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spans");
    TCase *tests = tcase_create("spans");
    tcase_add_checked_fixture(tests, make, NULL);
    tcase_add_test(tests, time_that_spans_share_counts_once);
    tcase_add_test(tests, nearly_sorted_spans_give_the_covered_time);
    tcase_add_test(tests, spans_that_do_not_touch_may_be_many);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
