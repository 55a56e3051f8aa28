/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/turns.h"

#include "config/compute_config.h"
#include "run_suite.h"

#include <check.h>

#define MIB ((int64_t)1 << 20)

static struct pb_turns turns;

static void share(int32_t cores, int64_t mib)
{
    const struct pb_compute_config compute = {.threads = cores,
                                              .memory_bytes = (uint64_t)(mib * MIB)};
    turns = (struct pb_turns){.cores = 0};
    pb_turns_share(&turns, &compute, false);
}

/* Begins a job; true: it got its turn immediately. */
static bool begin(int slot, int64_t tiles, int64_t mib)
{
    pb_turns_begin(&turns, slot);
    pb_turns_plan(&turns, slot, tiles, mib * MIB);
    return pb_turns_next(&turns) == slot;
}

START_TEST(small_jobs_compute_on_all_cores)
{
    share(4, 512);
    for (int i = 0; i < 4; i++) {
        ck_assert(pb_turns_may_begin(&turns));
        ck_assert(begin(i, 1, 10));
    }
    ck_assert(!pb_turns_may_begin(&turns));
    pb_turns_end(&turns, 2);
    ck_assert(pb_turns_may_begin(&turns));
}
END_TEST

START_TEST(first_job_is_alone_until_it_has_its_plan)
{
    share(4, 512);
    ck_assert(pb_turns_may_begin(&turns));
    pb_turns_begin(&turns, 0);
    ck_assert(!pb_turns_may_begin(&turns));
    pb_turns_plan(&turns, 0, 1, 10 * MIB);
    ck_assert_int_eq(pb_turns_next(&turns), 0);
    ck_assert(pb_turns_may_begin(&turns));
}
END_TEST

START_TEST(large_jobs_compute_one_at_a_time)
{
    share(4, 512);
    ck_assert(begin(0, 400, 100));
    ck_assert(!pb_turns_may_begin(&turns));
    ck_assert(!begin(1, 400, 100));
    pb_turns_end(&turns, 0);
    ck_assert_int_eq(pb_turns_next(&turns), 1);
    ck_assert_int_eq(pb_turns_next(&turns), -1);
}
END_TEST

START_TEST(jobs_need_cores_by_their_tiles)
{
    share(4, 512);
    ck_assert(begin(0, 8, 10)); /* 2 cores */
    ck_assert(begin(1, 5, 10)); /* 2 cores */
    ck_assert(!begin(2, 1, 10));
    pb_turns_end(&turns, 1);
    ck_assert_int_eq(pb_turns_next(&turns), 2);
}
END_TEST

START_TEST(large_job_waits_and_no_later_one_overtakes_it)
{
    share(2, 512);
    ck_assert(begin(0, 1, 10));
    ck_assert(pb_turns_may_begin(&turns));
    ck_assert(!begin(1, 1000, 10));
    ck_assert(!pb_turns_may_begin(&turns));
    ck_assert(!begin(2, 1, 10)); /* announced before */
    pb_turns_end(&turns, 0);
    ck_assert_int_eq(pb_turns_next(&turns), 1);
    ck_assert_int_eq(pb_turns_next(&turns), -1);
    pb_turns_end(&turns, 1);
    ck_assert_int_eq(pb_turns_next(&turns), 2);
}
END_TEST

START_TEST(plans_share_the_memory)
{
    share(8, 100);
    ck_assert(begin(0, 1, 40));
    ck_assert(begin(1, 1, 40));
    ck_assert(!pb_turns_may_begin(&turns)); /* the next one is expected to need 40, too */
    ck_assert(!begin(2, 1, 40));
    pb_turns_end(&turns, 0);
    ck_assert_int_eq(pb_turns_next(&turns), 2);
    ck_assert(!begin(3, 1, 21));
    pb_turns_end(&turns, 1);
    ck_assert_int_eq(pb_turns_next(&turns), 3);
}
END_TEST

START_TEST(job_that_needs_all_memory_computes_alone)
{
    share(8, 100);
    ck_assert(begin(0, 1, 1));
    ck_assert(!begin(1, 1, 200)); /* planned before the memory became less */
    pb_turns_end(&turns, 0);
    ck_assert_int_eq(pb_turns_next(&turns), 1);
}
END_TEST

START_TEST(jobs_with_polygons_plan_one_at_a_time)
{
    share(4, 512);
    turns.apart = true;
    ck_assert(begin(0, 1, 10));
    ck_assert(pb_turns_may_begin(&turns));
    pb_turns_begin(&turns, 1);
    ck_assert(!pb_turns_may_begin(&turns));
    pb_turns_plan(&turns, 1, 1, 10 * MIB);
    ck_assert_int_eq(pb_turns_next(&turns), 1);
    ck_assert(pb_turns_may_begin(&turns));
}
END_TEST

START_TEST(job_without_a_turn_uses_everything)
{
    share(4, 100);
    ck_assert(begin(0, 1, 10));
    pb_turns_take_all(&turns, 1);
    ck_assert(!pb_turns_may_begin(&turns));
    ck_assert(!begin(2, 1, 10));
    pb_turns_end(&turns, 1);
    ck_assert_int_eq(pb_turns_next(&turns), 2);
}
END_TEST

START_TEST(end_without_a_turn_frees_the_slot)
{
    share(2, 512);
    pb_turns_begin(&turns, 0);
    pb_turns_end(&turns, 0);
    pb_turns_end(&turns, 0);
    ck_assert(pb_turns_may_begin(&turns));
    ck_assert_int_eq(pb_turns_next(&turns), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("turns");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, small_jobs_compute_on_all_cores);
    tcase_add_test(tcase, first_job_is_alone_until_it_has_its_plan);
    tcase_add_test(tcase, large_jobs_compute_one_at_a_time);
    tcase_add_test(tcase, jobs_need_cores_by_their_tiles);
    tcase_add_test(tcase, large_job_waits_and_no_later_one_overtakes_it);
    tcase_add_test(tcase, plans_share_the_memory);
    tcase_add_test(tcase, job_that_needs_all_memory_computes_alone);
    tcase_add_test(tcase, jobs_with_polygons_plan_one_at_a_time);
    tcase_add_test(tcase, job_without_a_turn_uses_everything);
    tcase_add_test(tcase, end_without_a_turn_frees_the_slot);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
