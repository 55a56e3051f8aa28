/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "service/inbox/watch.h"

#include "run_suite.h"

#include <check.h>

#define START 100000

static struct pb_pace pace;

static void make(void)
{
    pace = (struct pb_pace){0};
}

START_TEST(a_single_event_is_followed_as_soon_as_it_is_quiet)
{
    ck_assert(!pb_pace_gathers(&pace, START));
    ck_assert_int_eq(pb_pace_event(&pace, START), PB_PACE_QUIET_MS);
    ck_assert(pb_pace_gathers(&pace, START + PB_PACE_QUIET_MS - 1));
    ck_assert(!pb_pace_gathers(&pace, START + PB_PACE_QUIET_MS));
}
END_TEST

START_TEST(a_burst_gathers_but_not_for_ever)
{
    int64_t now = START;
    for (; now < START + PB_PACE_GATHER_MS; now++) {
        (void)pb_pace_event(&pace, now);
        ck_assert_int_eq(pb_pace_gathers(&pace, now + 1), now + 1 < START + PB_PACE_GATHER_MS);
    }
    pb_pace_begin(&pace); /* arrivals during the round gather again */
    (void)pb_pace_event(&pace, now);
    ck_assert(pb_pace_gathers(&pace, now + 1));
}
END_TEST

START_TEST(a_round_is_followed_by_a_short_rest)
{
    pb_pace_end(&pace, START, 0);
    ck_assert_int_eq(pb_pace_event(&pace, START + 1), PB_PACE_REST_MS - 1);
    ck_assert_int_eq(pb_pace_event(&pace, START + PB_PACE_REST_MS), PB_PACE_QUIET_MS);
}
END_TEST

START_TEST(test_rounds_use_a_tenth_of_the_time)
{
    int64_t now = START, cost = 0;
    for (; now < START + 10 * PB_PACE_CREDIT_MS; now += pb_pace_rest(&pace, now)) {
        now += 400;
        cost += 400;
        pb_pace_end(&pace, now, 400);
    }
    ck_assert_int_le(cost, (now - START) / 10 + PB_PACE_CREDIT_MS / 10);
    ck_assert_int_ge(cost, (now - START) / 10);
}
END_TEST

START_TEST(test_round_after_a_quiet_time_needs_no_pause)
{
    for (int i = 0; i < 100; i++)
        pb_pace_end(&pace, START, 1000);
    ck_assert_int_gt(pb_pace_rest(&pace, START), PB_PACE_CREDIT_MS);
    const int64_t later = START + 100 * 10 * 1000 + PB_PACE_CREDIT_MS;
    pb_pace_end(&pace, later, PB_PACE_CREDIT_MS / 10);
    ck_assert_int_eq(pb_pace_rest(&pace, later), PB_PACE_REST_MS);
    ck_assert_int_eq(pb_pace_period(30000, 100), 30000);
    ck_assert_int_eq(pb_pace_period(30000, 6000), 60000);
}
END_TEST

START_TEST(test_settled_file_waits_for_the_end_of_a_pause)
{
    int64_t now = START, cost = 0;
    for (; now < START + 10 * PB_PACE_CREDIT_MS; now += pb_pace_delay(&pace, now, 1)) {
        now += 400;
        cost += 400;
        pb_pace_end(&pace, now, 400);
    }
    ck_assert_int_le(cost, (now - START) / 10 + PB_PACE_CREDIT_MS / 10);
    ck_assert_int_eq(pb_pace_delay(&pace, now, 5 * PB_PACE_CREDIT_MS), 5 * PB_PACE_CREDIT_MS);
    now += 2 * PB_PACE_CREDIT_MS;
    pb_pace_end(&pace, now, 1);
    ck_assert_int_eq(pb_pace_delay(&pace, now, 0), PB_PACE_REST_MS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pace");
    TCase *tests = tcase_create("pace");
    tcase_add_checked_fixture(tests, make, NULL);
    tcase_add_test(tests, a_single_event_is_followed_as_soon_as_it_is_quiet);
    tcase_add_test(tests, a_burst_gathers_but_not_for_ever);
    tcase_add_test(tests, a_round_is_followed_by_a_short_rest);
    tcase_add_test(tests, test_rounds_use_a_tenth_of_the_time);
    tcase_add_test(tests, test_round_after_a_quiet_time_needs_no_pause);
    tcase_add_test(tests, test_settled_file_waits_for_the_end_of_a_pause);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
