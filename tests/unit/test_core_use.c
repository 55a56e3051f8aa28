/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "service/worker/core_use.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

#define MS UINT64_C(1000000)

static struct pb_core_facts facts;
static struct pb_core_uses uses;

/* 4 s on two cores: 1 s of them idle. */
static void make(void)
{
    memset(&facts, 0, sizeof facts);
    facts.cores = 2;
    struct pb_part_report *part = facts.part;
    part[PB_RUN_OPEN].wall_ns = 100 * MS;
    part[PB_RUN_OPEN].work.cpu_ns[PB_WORK_OPEN] = 90 * MS;
    part[PB_RUN_OPEN].work.wall_ns[PB_WORK_OPEN] = 100 * MS;
    part[PB_RUN_TILES].wall_ns = 3000 * MS;
    part[PB_RUN_TILES].work.cpu_ns[PB_WORK_DECODE] = 4000 * MS;
    part[PB_RUN_TILES].work.cpu_ns[PB_WORK_ENCODE] = 1600 * MS;
    part[PB_RUN_TILES].work.storage_ns[PB_WORK_LOAD] = 300 * MS;
    part[PB_RUN_FINISH].wall_ns = 800 * MS;
    part[PB_RUN_FINISH].work.cpu_ns[PB_WORK_CHECKSUM] = 500 * MS;
    part[PB_RUN_FINISH].work.wall_ns[PB_WORK_CHECKSUM] = 510 * MS;
    part[PB_RUN_FINISH].work.wall_ns[PB_WORK_SYNC] = 250 * MS;
    part[PB_RUN_FINISH].work.wall_ns[PB_WORK_WAIT] = 9000 * MS;
    part[PB_RUN_PUBLISH].wall_ns = 100 * MS;
    part[PB_RUN_PUBLISH].work.cpu_ns[PB_WORK_PUBLISH] = 2 * MS;
    part[PB_RUN_PUBLISH].work.wall_ns[PB_WORK_PUBLISH] = 100 * MS;
    facts.process_ns = (90 + 4000 + 1600 + 500 + 2 + 160) * MS;
}

static double share_of(const char *words)
{
    for (size_t i = 0; i < uses.n; i++)
        if (strcmp(uses.use[i].words, words) == 0)
            return uses.use[i].share;
    return 0;
}

START_TEST(shares_are_of_all_cores_for_the_whole_time)
{
    pb_core_uses_find(&facts, &uses);
    ck_assert_double_eq_tol(share_of("decode: 50% of both cores"), 0.5, 1e-9);
    ck_assert_double_eq_tol(share_of("encode: 20% of both cores"), 0.2, 1e-9);
    ck_assert_double_eq_tol(share_of("other: 2% of both cores"), 0.02, 1e-9);
    ck_assert_uint_eq(uses.other_ns, 160 * MS);
}
END_TEST

START_TEST(unused_cores_are_reported_by_phase_and_its_work)
{
    pb_core_uses_find(&facts, &uses);
    ck_assert_double_eq_tol(
        share_of("after the last tile: 0.80 s on one core (checksum 0.51 s, sync 0.25 s)"), 0.1375,
        1e-9);
    ck_assert_double_eq_tol(share_of("before the first tile: 0.10 s on one core (open 0.10 s)"),
                            0.01375, 1e-9);
    ck_assert_double_eq_tol(share_of("publishing: 0.10 s on no core (publish 0.10 s)"), 0.02475,
                            1e-9);
}
END_TEST

START_TEST(idle_core_time_asleep_in_storage_is_storage_wait)
{
    struct pb_part_report *tiles = &facts.part[PB_RUN_TILES];
    pb_core_uses_find(&facts, &uses);
    ck_assert_double_eq_tol(share_of("waiting for storage: 4% of both cores"), 0.0375, 1e-9);
    ck_assert_double_eq_tol(
        share_of("idle, or with other programs, while tiles went through: 1% of both cores"),
        0.0125, 1e-9);
    tiles->work.storage_ns[PB_WORK_LOAD] = 5000 * MS; /* many threads: more than was idle */
    pb_core_uses_find(&facts, &uses);
    ck_assert_double_eq_tol(share_of("waiting for storage: 5% of both cores"), 0.05, 1e-9);
}
END_TEST

START_TEST(all_core_seconds_are_told_once)
{
    double all = 0;
    pb_core_uses_find(&facts, &uses);
    for (size_t i = 0; i < uses.n; i++) {
        all += uses.use[i].share;
        ck_assert(i == 0 || uses.use[i].share <= uses.use[i - 1].share);
    }
    /* Use outside of the phases is added to theirs. */
    ck_assert_double_eq_tol(all, 1.02, 0.01);
}
END_TEST

START_TEST(the_line_has_the_largest_and_no_small_ones)
{
    pb_core_uses_find(&facts, &uses);
    ck_assert_str_eq(uses.line,
                     "decode: 50% of both cores; encode: 20%; after the last tile: 0.80 s on one "
                     "core (checksum 0.51 s, sync 0.25 s); checksum: 6%");
}
END_TEST

START_TEST(the_line_tells_a_phase_once)
{
    facts.part[PB_RUN_FINISH].work.cpu_ns[PB_WORK_CHECKSUM] = 100 * MS;
    facts.part[PB_RUN_FINISH].work.cpu_ns[PB_WORK_FINISH] = 800 * MS;
    facts.part[PB_RUN_FINISH].work.wall_ns[PB_WORK_FINISH] = 800 * MS;
    pb_core_uses_find(&facts, &uses);
    ck_assert_double_gt(share_of("finish: 10% of both cores"), 0);
    ck_assert_ptr_null(strstr(uses.line, "finish: "));
    ck_assert_ptr_nonnull(strstr(uses.line, "(finish 0.80 s, checksum 0.51 s)"));
}
END_TEST

START_TEST(cores_are_named_by_their_number)
{
    const char *const words[] = {"decode: 100% of the core", "decode: 50% of both cores",
                                 "decode: 33% of 3 cores"};
    memset(&facts, 0, sizeof facts);
    facts.part[PB_RUN_TILES].wall_ns = 1000 * MS;
    facts.part[PB_RUN_TILES].work.cpu_ns[PB_WORK_DECODE] = 1000 * MS;
    for (facts.cores = 1; facts.cores <= 3; facts.cores++) {
        pb_core_uses_find(&facts, &uses);
        ck_assert_double_gt(share_of(words[facts.cores - 1]), 0);
    }
}
END_TEST

START_TEST(without_time_nothing_is_told)
{
    memset(&facts, 0, sizeof facts);
    pb_core_uses_find(&facts, &uses);
    ck_assert_uint_eq(uses.n, 0);
    ck_assert_str_eq(uses.line, "");
}
END_TEST

START_TEST(facts_are_read_back_as_they_were_printed)
{
    struct pb_core_facts again;
    struct pb_json_value *value = NULL;
    struct pb_json *json = pb_json_create(false);
    size_t bytes;
    pb_json_object(json, NULL);
    pb_core_facts_print(&facts, json);
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    ck_assert_int_eq(pb_json_parse(text, bytes, PB_JSON_LINE_MAX, &value), 0);
    pb_core_facts_read(value, &again);
    ck_assert_mem_eq(&again, &facts, sizeof facts);
    pb_json_release(value);
    pb_json_destroy(json);
}
END_TEST

START_TEST(numbers_that_cannot_be_count_as_none)
{
    static const char text[] = "{\"cores\": -3, \"cpu_ms\": 1e300, \"phases\": [{\"name\": "
                               "\"tiles\", \"wall_ms\": \"x\", \"work\": [{\"name\": \"decode\", "
                               "\"cpu_ms\": -1}, {\"name\": \"nothing\", \"cpu_ms\": 5}, 7]}, 3]}";
    struct pb_json_value *value = NULL;
    struct pb_core_facts none, read;
    memset(&none, 0, sizeof none);
    ck_assert_int_eq(pb_json_parse(text, sizeof text - 1, PB_JSON_LINE_MAX, &value), 0);
    pb_core_facts_read(value, &read);
    ck_assert_mem_eq(&read, &none, sizeof none);
    pb_json_release(value);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_use");
    TCase *tests = tcase_create("core_use");
    tcase_add_checked_fixture(tests, make, NULL);
    tcase_add_test(tests, shares_are_of_all_cores_for_the_whole_time);
    tcase_add_test(tests, unused_cores_are_reported_by_phase_and_its_work);
    tcase_add_test(tests, idle_core_time_asleep_in_storage_is_storage_wait);
    tcase_add_test(tests, all_core_seconds_are_told_once);
    tcase_add_test(tests, the_line_has_the_largest_and_no_small_ones);
    tcase_add_test(tests, the_line_tells_a_phase_once);
    tcase_add_test(tests, cores_are_named_by_their_number);
    tcase_add_test(tests, without_time_nothing_is_told);
    tcase_add_test(tests, facts_are_read_back_as_they_were_printed);
    tcase_add_test(tests, numbers_that_cannot_be_count_as_none);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
