/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/hold.h"

#include "run_suite.h"

#include <check.h>

#define LIMIT 3

static struct pb_hold hold;

static void make(void)
{
    hold = (struct pb_hold){0};
}

static enum pb_hold_verdict fault_of(int64_t job, enum pb_code code, int64_t now_ms)
{
    struct pb_hold_fault fault = {
        .job = job, .started_ms = now_ms - 1, .code = code, .limit = LIMIT, .random = UINT32_MAX};
    return pb_hold_fault(&hold, &fault, now_ms);
}

static enum pb_hold_verdict set_back(int64_t job, int64_t now_ms)
{
    return fault_of(job, PB_E_MEMORY, now_ms);
}

START_TEST(waits_grow_to_a_minute_and_a_success_ends_them)
{
    int64_t now = 1000, most = 0;
    for (int i = 0; i < 12; i++) {
        ck_assert_int_eq(set_back(1 + i % 2, now), PB_HOLD_QUEUE);
        int64_t wait = hold.until_ms - now, full = PB_HOLD_FIRST_MS << (i < 6 ? i : 6);
        full = full < PB_HOLD_MAX_MS ? full : PB_HOLD_MAX_MS;
        ck_assert_int_ge(wait, full * 3 / 4);
        ck_assert_int_le(wait, full);
        most = wait > most ? wait : most;
        ck_assert(!pb_hold_may_start(&hold, hold.until_ms - 1));
        ck_assert(pb_hold_may_start(&hold, hold.until_ms));
        now = hold.until_ms;
        ck_assert(pb_hold_tick(&hold, now));
        pb_hold_started(&hold, 1 + (i + 1) % 2, now);
        ck_assert(!pb_hold_may_start(&hold, now)); /* one probe at a time */
        now += 5;
    }
    ck_assert_int_gt(most, PB_HOLD_MAX_MS / 2);
    pb_hold_success(&hold, 1, now);
    ck_assert(pb_hold_may_start(&hold, now));
    ck_assert(!pb_hold_waits(&hold));
    (void)set_back(7, now + 1);
    ck_assert_int_le(hold.until_ms - now, PB_HOLD_FIRST_MS + 1);
}
END_TEST

START_TEST(probe_that_was_not_found_is_tried_a_second_later)
{
    (void)set_back(1, 1000);
    const int64_t now = hold.until_ms + 1;
    ck_assert(pb_hold_tick(&hold, now));
    pb_hold_found_none(&hold, now);
    ck_assert(!pb_hold_tick(&hold, now + PB_HOLD_FIRST_MS - 1));
    ck_assert(pb_hold_tick(&hold, now + PB_HOLD_FIRST_MS));
    pb_hold_started(&hold, 2, now + PB_HOLD_FIRST_MS);
    pb_hold_success(&hold, 2, now + PB_HOLD_FIRST_MS);
    pb_hold_found_none(&hold, now + PB_HOLD_FIRST_MS);
    ck_assert(pb_hold_may_start(&hold, now + PB_HOLD_FIRST_MS));
}
END_TEST

START_TEST(a_fault_of_every_job_sets_none_aside)
{
    int64_t now = 1000;
    for (int i = 0; i < 2000; i++) {
        now += PB_HOLD_MAX_MS;
        ck_assert_int_eq(set_back(1 + i % 10, now), PB_HOLD_QUEUE);
    }
}
END_TEST

START_TEST(job_that_fails_while_others_succeed_is_set_aside)
{
    int64_t now = 1000, delay = PB_HOLD_FIRST_MS;
    ck_assert_int_eq(set_back(1, now), PB_HOLD_QUEUE);
    for (int i = 1; i < LIMIT; i++, delay *= 4) {
        pb_hold_success(&hold, 100 + i, now + 10);
        now += 20;
        ck_assert_int_eq(set_back(1, now), PB_HOLD_JOB);
        ck_assert(pb_hold_may_start(&hold, now)); /* the others */
        ck_assert(pb_hold_may_try(&hold, 2, now));
        ck_assert(!pb_hold_may_try(&hold, 1, now + delay - 1));
        ck_assert(pb_hold_waits(&hold));
        ck_assert(pb_hold_may_try(&hold, 1, now + delay));
        ck_assert(!pb_hold_tick(&hold, now + delay - 1));
        ck_assert(pb_hold_tick(&hold, now + delay));
        now += delay;
    }
    pb_hold_success(&hold, 200, now + 10);
    ck_assert_int_eq(set_back(1, now + 20), PB_HOLD_ASIDE);
    ck_assert_int_eq(pb_hold_rank(&hold, 1), 0);
    ck_assert_int_eq(set_back(1, now + 30), PB_HOLD_QUEUE); /* retried by a person: a new story */
}
END_TEST

START_TEST(only_a_success_after_the_last_fault_blames_the_job)
{
    int64_t now = 1000;
    pb_hold_success(&hold, 9, now);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(set_back(1, now + 10), PB_HOLD_QUEUE);
        now += PB_HOLD_MAX_MS;
    }
    pb_hold_success(&hold, 9, now);
    ck_assert_int_eq(set_back(1, now + 10), PB_HOLD_JOB);
    ck_assert_int_eq(set_back(1, now + 20), PB_HOLD_QUEUE);
}
END_TEST

START_TEST(lack_of_space_sets_no_job_aside)
{
    int64_t now = 1000;
    ck_assert_int_eq(fault_of(1, PB_E_OUTPUT_FULL, now), PB_HOLD_QUEUE);
    for (int i = 0; i < 100; i++) {
        pb_hold_success(&hold, 2, now + 1);
        now += 2 * PB_HOLD_MAX_MS;
        ck_assert_int_eq(fault_of(1, PB_E_OUTPUT_FULL, now), PB_HOLD_JOB);
        ck_assert(pb_hold_may_try(&hold, 1, now + PB_HOLD_MAX_MS));
    }
}
END_TEST

START_TEST(jobs_that_failed_side_by_side_count_once)
{
    struct pb_hold_fault fault = {.job = 1, .started_ms = 500, .code = PB_E_MEMORY, .limit = LIMIT};
    (void)pb_hold_fault(&hold, &fault, 1000);
    int64_t until = hold.until_ms;
    for (fault.job = 2; fault.job < 5; fault.job++)
        (void)pb_hold_fault(&hold, &fault, 1100);
    ck_assert_int_eq(hold.until_ms, until);
    ck_assert_int_eq(hold.faults, 4);
}
END_TEST

START_TEST(long_probe_lets_others_start_then_delay_doubles)
{
    (void)set_back(1, 1000);
    (void)set_back(1, 5000);
    int64_t now = hold.until_ms;
    pb_hold_started(&hold, 2, now);
    ck_assert(!pb_hold_tick(&hold, now + PB_HOLD_PROBE_MS - 1));
    ck_assert(!pb_hold_may_start(&hold, now + PB_HOLD_PROBE_MS - 1));
    now += PB_HOLD_PROBE_MS;
    ck_assert(pb_hold_tick(&hold, now));
    ck_assert(pb_hold_may_start(&hold, now));
    (void)set_back(2, now);
    ck_assert_int_ge(hold.until_ms - now, 3 * PB_HOLD_FIRST_MS);
}
END_TEST

START_TEST(probe_that_ends_without_success_allows_the_next)
{
    (void)set_back(1, 1000);
    int64_t now = hold.until_ms;
    pb_hold_started(&hold, 2, now);
    pb_hold_end(&hold, 2, true);
    ck_assert(pb_hold_may_start(&hold, now + 1));
    ck_assert(hold.on);
}
END_TEST

START_TEST(unstartable_worker_holds_the_queue_without_a_job)
{
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(set_back(0, 1000 + i * PB_HOLD_MAX_MS), PB_HOLD_QUEUE);
    ck_assert_uint_eq(hold.n_setbacks, 0);
    pb_hold_clear(&hold);
    ck_assert(!pb_hold_waits(&hold));
}
END_TEST

START_TEST(it_remembers_the_jobs_that_failed_last)
{
    for (int64_t job = 1; job <= PB_HOLD_JOBS + 10; job++)
        (void)set_back(job, 1000 + job);
    ck_assert_uint_eq(hold.n_setbacks, PB_HOLD_JOBS);
    ck_assert_int_eq(pb_hold_rank(&hold, 10), 0);
    ck_assert_int_eq(pb_hold_rank(&hold, 11), 1011);
    pb_hold_hurry(&hold, 5000);
    ck_assert(pb_hold_may_start(&hold, 5000));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hold");
    TCase *t = tcase_create("hold");
    tcase_add_checked_fixture(t, make, NULL);
    tcase_add_test(t, waits_grow_to_a_minute_and_a_success_ends_them);
    tcase_add_test(t, probe_that_was_not_found_is_tried_a_second_later);
    tcase_add_test(t, a_fault_of_every_job_sets_none_aside);
    tcase_add_test(t, job_that_fails_while_others_succeed_is_set_aside);
    tcase_add_test(t, only_a_success_after_the_last_fault_blames_the_job);
    tcase_add_test(t, lack_of_space_sets_no_job_aside);
    tcase_add_test(t, jobs_that_failed_side_by_side_count_once);
    tcase_add_test(t, long_probe_lets_others_start_then_delay_doubles);
    tcase_add_test(t, probe_that_ends_without_success_allows_the_next);
    tcase_add_test(t, unstartable_worker_holds_the_queue_without_a_job);
    tcase_add_test(t, it_remembers_the_jobs_that_failed_last);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
