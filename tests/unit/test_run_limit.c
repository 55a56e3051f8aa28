/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/run_limit.h"

#include "config/base/json_reader.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

static struct pb_core_facts facts;
static char words[PB_RUN_LIMIT_BYTES];

static void make(void)
{
    memset(&facts, 0, sizeof facts);
    facts.cores = 16;
    facts.part[PB_RUN_OPEN].wall_ns = 50 * MS;
    facts.part[PB_RUN_TILES].wall_ns = 200 * MS;
    facts.part[PB_RUN_PUBLISH].wall_ns = 100 * MS;
    facts.part[PB_RUN_TILES].work.cpu_ns[PB_WORK_LOAD] = 30 * MS;
    facts.part[PB_RUN_TILES].work.cpu_ns[PB_WORK_ENCODE] = 30 * MS;
}

/* Shares in percent: of the GPU's decoding, computing and encoding, of the link both ways, and of
 * the threads that read and write. */
static const char *limit(int decode, int compute, int encode, int in, int out, int read, int write)
{
    char text[900];
    struct pb_json_value *report = NULL;
    (void)snprintf(text, sizeof text,
                   "{\"elapsed_ms\": 200, \"link\": {\"to_device_share\": %g, "
                   "\"from_device_share\": %g}, \"gpu\": {\"work\": [{\"name\": \"decode\", "
                   "\"share\": %g}, {\"name\": \"compute\", \"share\": %g}, {\"name\": \"encode\", "
                   "\"share\": %g}]}, \"stages\": [{\"name\": \"read\", \"threads\": 4, "
                   "\"busy_ms\": %d}, {\"name\": \"write\", \"threads\": 2, \"busy_ms\": %d}]}",
                   in / 100., out / 100., decode / 100., compute / 100., encode / 100., read * 8,
                   write * 4);
    ck_assert_int_eq(pb_json_parse(text, strlen(text), PB_JSON_LINE_MAX, &report), 0);
    pb_run_limit_find(&facts, report, words);
    pb_json_release(report);
    return words;
}

START_TEST(the_busiest_stage_limits_the_tiles)
{
    ck_assert_str_eq(limit(90, 5, 20, 30, 30, 20, 40),
                     "decoding on the GPU: under way 90% of the 0.20 s of tiles");
    ck_assert_str_eq(limit(50, 80, 20, 30, 30, 20, 40),
                     "computing on the GPU: under way 80% of the 0.20 s of tiles");
    ck_assert_str_eq(limit(50, 5, 70, 30, 30, 20, 40),
                     "encoding on the GPU: under way 70% of the 0.20 s of tiles");
    ck_assert_str_eq(limit(50, 5, 20, 95, 30, 20, 40),
                     "the link to the GPU: in use 95% of the 0.20 s of tiles");
    ck_assert_str_eq(limit(50, 5, 20, 30, 95, 20, 40),
                     "the link from the GPU: in use 95% of the 0.20 s of tiles");
    ck_assert_str_eq(limit(50, 5, 20, 30, 30, 99, 40),
                     "reading: its threads busy 99% of the 0.20 s of tiles");
    ck_assert_str_eq(limit(50, 5, 20, 30, 30, 20, 97),
                     "encoding on the cores: its threads busy 97% of the 0.20 s of tiles");
}
END_TEST

START_TEST(what_the_threads_did_most_names_their_stage)
{
    facts.part[PB_RUN_TILES].work.cpu_ns[PB_WORK_DECODE] = 31 * MS;
    facts.part[PB_RUN_TILES].work.cpu_ns[PB_WORK_STORE] = 31 * MS;
    ck_assert_str_eq(limit(50, 5, 20, 30, 30, 99, 40),
                     "decoding on the cores: its threads busy 99% of the 0.20 s of tiles");
    ck_assert_str_eq(limit(50, 5, 20, 30, 30, 20, 97),
                     "writing: its threads busy 97% of the 0.20 s of tiles");
}
END_TEST

START_TEST(a_phase_that_is_longer_than_the_tiles_is_the_limit)
{
    facts.part[PB_RUN_FINISH].wall_ns = 300 * MS;
    ck_assert_str_eq(limit(90, 5, 20, 30, 30, 20, 40),
                     "publishing: 0.40 of 0.65 s are after the last tile");
    facts.part[PB_RUN_OPEN].wall_ns = 600 * MS;
    ck_assert_str_eq(limit(90, 5, 20, 30, 30, 20, 40),
                     "setting up: 0.60 of 1.20 s are before the first tile");
}
END_TEST

START_TEST(no_stage_is_the_limit_if_all_are_mostly_idle)
{
    ck_assert_str_eq(limit(40, 5, 20, 30, 30, 20, 10),
                     "no stage alone: in the 0.20 s of tiles the busiest is decoding on the GPU, "
                     "under way (40%)");
    ck_assert_str_eq(limit(0, 0, 0, 0, 0, 0, 0),
                     "no stage alone: in the 0.20 s of tiles the busiest is none (0%)");
}
END_TEST

START_TEST(without_a_gpu_or_time_nothing_is_said)
{
    struct pb_json_value *report = NULL;
    ck_assert_int_eq(pb_json_parse("{\"elapsed_ms\": 200}", 19, PB_JSON_LINE_MAX, &report), 0);
    pb_run_limit_find(&facts, report, words);
    ck_assert_str_eq(words, "");
    pb_json_release(report);
    memset(&facts, 0, sizeof facts);
    ck_assert_str_eq(limit(90, 5, 20, 30, 30, 20, 40), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run_limit");
    TCase *tests = tcase_create("run_limit");
    tcase_add_checked_fixture(tests, make, NULL);
    tcase_add_test(tests, the_busiest_stage_limits_the_tiles);
    tcase_add_test(tests, what_the_threads_did_most_names_their_stage);
    tcase_add_test(tests, a_phase_that_is_longer_than_the_tiles_is_the_limit);
    tcase_add_test(tests, no_stage_is_the_limit_if_all_are_mostly_idle);
    tcase_add_test(tests, without_a_gpu_or_time_nothing_is_said);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
