/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/gather/sets.h"

#include "config/config.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALL INT64_C(1000000000000) /* ms */

static const char text[] = "pipelines:\n"
                           "  first:\n"
                           "    input:\n"
                           "      group: '(?<scene>a\\d)_(R|N|X).tif'\n"
                           "      files: {R: '{scene}_R.tif', N: '{scene}_N.tif'}\n"
                           "      complete: {expire: 10s}\n"
                           "    products: [statistics: {bands: [R, N]}]\n"
                           "  second:\n"
                           "    input: {group: '(?<scene>a\\d)_B.tif', files: {B: '*_B.tif'}}\n"
                           "    products: [statistics: {}]\n"
                           "  dates:\n"
                           "    input:\n"
                           "      group: '(?<tile>t\\d)_(?<date>\\d{8})\\.tif'\n"
                           "      by: '{tile}_{date:%Y%m}'\n"
                           "      files: {R: {match: '*.tif', nth: 1}, N: {match: '*.tif', nth: 2, "
                           "optional: true}}\n"
                           "      complete: {expire: 10s, reopen: 1h}\n"
                           "    products: [statistics: {bands: [R, N]}]\n";

static struct pb_config *config;
static struct pb_sets *sets;

static void make(void)
{
    struct pb_err_list errors = {0};
    ck_assert_msg(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config) == 0,
                  "%s", errors.err[0].msg);
    sets = pb_sets_create();
    pb_sets_begin(sets);
}

static void end(void)
{
    pb_sets_destroy(sets);
    pb_config_destroy(config);
}

/* A file that arrived `age_ms` ago. */
static void add(const char *name, int64_t age_ms, bool is_still)
{
    char scene[256];
    const struct pb_pipeline_config *pipeline = pb_config_match_group(config, name, NULL, scene);
    const struct pb_set_file file = {
        .name = name, .size = 3, .ctime_ns = (WALL - age_ms) * 1000000, .is_still = is_still};
    ck_assert_ptr_nonnull(pipeline);
    ck_assert_int_eq(pb_sets_add(sets, (size_t)(pipeline - config->pipelines), scene, false, &file),
                     0);
}

static size_t judge(bool trusted)
{
    const struct pb_sets_now now = {WALL, trusted};
    ck_assert_int_eq(pb_sets_end(sets, config), 0);
    pb_sets_judge(sets, config, &now);
    return pb_sets_count(sets);
}

START_TEST(files_of_a_scene_are_one_set_whatever_their_order)
{
    add("a2_N.tif", 1, true);
    add("a1_R.tif", 2, true);
    add("a2_X.tif", 3, true);
    add("a1_B.tif", 4, true);
    add("a1_N.tif", 5, true);
    ck_assert_uint_eq(judge(true), 3);
    const struct pb_set *set = pb_sets_at(sets, 0);
    ck_assert_str_eq(set->scene, "a1");
    ck_assert_str_eq(set->pipeline, "first");
    ck_assert_uint_eq(set->n, 2);
    ck_assert_uint_eq(set->bytes, 6);
    ck_assert_str_eq(set->file[0].name, "a1_N.tif");
    ck_assert(set->is_due && !set->is_incomplete);
    set = pb_sets_at(sets, 1);
    ck_assert_str_eq(set->scene, "a2");
    ck_assert(!set->is_due && set->is_incomplete);
    ck_assert_ptr_nonnull(strstr(set->missing, "1 of 2 files of the scene is missing: band R"));
    ck_assert_str_eq(pb_sets_at(sets, 2)->pipeline, "second");
}
END_TEST

START_TEST(files_of_other_directories_are_other_sets)
{
    add("x/a1_R.tif", 1, true);
    add("x/a1_N.tif", 1, true);
    add("xy/a1_R.tif", 1, true);
    add("a1_N.tif", 1, true);
    ck_assert_uint_eq(judge(true), 3);
    size_t due = 0;
    for (size_t i = 0; i < 3; i++)
        due += pb_sets_at(sets, i)->is_due;
    ck_assert_uint_eq(due, 1);
}
END_TEST

START_TEST(a_set_waits_until_each_of_its_files_is_still)
{
    add("a1_R.tif", 1, true);
    add("a1_N.tif", 1, true);
    add("a1_X.tif", 1, false); /* no band, but on its way */
    ck_assert_uint_eq(judge(true), 1);
    ck_assert(!pb_sets_at(sets, 0)->is_due);
    ck_assert(!pb_sets_at(sets, 0)->is_incomplete);
}
END_TEST

START_TEST(incomplete_set_is_due_a_time_after_its_last_file)
{
    add("a1_R.tif", 9000, true);
    add("a1_X.tif", 60000, true);
    add("a2_R.tif", 10000, true);
    ck_assert_uint_eq(judge(true), 2);
    ck_assert(!pb_sets_at(sets, 0)->is_due);
    ck_assert(pb_sets_at(sets, 1)->is_due);
    ck_assert(pb_sets_at(sets, 1)->is_incomplete);
    ck_assert_int_eq(pb_sets_due_ms(sets, WALL), 1000);
}
END_TEST

START_TEST(a_set_waits_a_while_for_optional_files)
{
    add("t1_20260604.tif", 10000, true);
    add("t2_20260604.tif", 9000, true);
    add("t3_20260630.tif", 1, true);
    add("t3_20260604.tif", 1, true);
    add("t3_20260704.tif", 1, true);
    ck_assert_uint_eq(judge(true), 4);
    ck_assert_str_eq(pb_sets_at(sets, 0)->scene, "t1_202606");
    ck_assert(pb_sets_at(sets, 0)->is_due);
    ck_assert(!pb_sets_at(sets, 1)->is_due);
    ck_assert_str_eq(pb_sets_at(sets, 1)->missing, "1 optional file of the scene may still arrive");
    ck_assert(pb_sets_at(sets, 2)->is_due && !pb_sets_at(sets, 2)->is_incomplete);
    ck_assert_str_eq(pb_sets_at(sets, 3)->scene, "t3_202607");
    ck_assert_int_eq(pb_sets_due_ms(sets, WALL), 1000);
}
END_TEST

static void know(size_t i, const char *name, const char *busy)
{
    struct pb_set_earlier earlier = {.n = name != NULL};
    (void)snprintf(earlier.busy, sizeof earlier.busy, "%s", busy);
    earlier.name = calloc(1, sizeof *earlier.name);
    ck_assert_ptr_nonnull(earlier.name);
    earlier.name[0] = name ? strdup(name) : NULL;
    pb_sets_know(sets, i, &earlier);
}

START_TEST(joining_file_is_judged_with_files_of_earlier_jobs)
{
    const struct pb_sets_now now = {WALL, true};
    add("t1_20260609.tif", 1, true);
    add("t2_20260609.tif", 1, true);
    ck_assert_int_eq(pb_sets_end(sets, config), 0);
    ck_assert_int_eq(pb_sets_at(sets, 0)->reopen_ms, 3600000);
    know(0, "t1_20260604.tif", "");
    know(1, "t2_20260609.tif", ""); /* the same file again */
    pb_sets_judge(sets, config, &now);
    ck_assert(pb_sets_at(sets, 0)->is_due && !pb_sets_at(sets, 0)->is_incomplete);
    ck_assert(!pb_sets_at(sets, 1)->is_due && pb_sets_at(sets, 1)->is_incomplete);
}
END_TEST

START_TEST(joining_file_waits_for_a_job_without_limit)
{
    const struct pb_sets_now now = {WALL, true};
    add("t1_20260609.tif", 60000, true);
    ck_assert_int_eq(pb_sets_end(sets, config), 0);
    know(0, NULL, "20261121-082850-aaaa");
    pb_sets_judge(sets, config, &now);
    ck_assert(!pb_sets_at(sets, 0)->is_due && pb_sets_at(sets, 0)->is_incomplete);
    ck_assert_str_eq(pb_sets_at(sets, 0)->missing,
                     "1 file to be joined with those of job 20261121-082850-aaaa when it is over");
    ck_assert_int_eq(pb_sets_at(sets, 0)->expires_ms, 0);
    ck_assert_int_eq(pb_sets_due_ms(sets, WALL), -1);
}
END_TEST

START_TEST(expired_set_waits_for_earlier_files_of_pipeline)
{
    static const struct {
        size_t pipeline;
        int64_t age_ms;
        bool is_due;
    } cases[] = {{0, 60000, false}, {0, 50000, false}, {0, 49999, true}, {1, 60000, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pb_sets_begin(sets);
        add("a1_R.tif", 60000, true); /* it expires 50 s ago */
        ck_assert_int_eq(pb_sets_await(sets, cases[i].pipeline, (WALL - cases[i].age_ms) * 1000000),
                         0);
        ck_assert_uint_eq(judge(true), 1);
        ck_assert(pb_sets_at(sets, 0)->is_due == cases[i].is_due);
        ck_assert_int_eq(pb_sets_due_ms(sets, WALL), -1);
    }
}
END_TEST

START_TEST(complete_set_waits_for_files_before_its_last)
{
    for (int later = 0; later < 2; later++) {
        pb_sets_begin(sets);
        add("a1_R.tif", 60000, true);
        add("a1_N.tif", 50000, true);
        ck_assert_int_eq(pb_sets_await(sets, 0, (WALL - 50000 + later) * 1000000), 0);
        ck_assert_uint_eq(judge(true), 1);
        ck_assert(pb_sets_at(sets, 0)->is_due == (later == 1));
    }
}
END_TEST

START_TEST(nothing_expires_by_a_clock_that_was_set)
{
    add("a1_R.tif", 60000, true);
    ck_assert_uint_eq(judge(false), 1);
    ck_assert(!pb_sets_at(sets, 0)->is_due);
    ck_assert_int_eq(pb_sets_due_ms(sets, WALL), -1);
}
END_TEST

START_TEST(a_scan_without_files_has_no_sets)
{
    add("a1_R.tif", 1, true);
    ck_assert_uint_eq(judge(true), 1);
    pb_sets_begin(sets);
    ck_assert_uint_eq(judge(true), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sets");
    TCase *tests = tcase_create("sets");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, files_of_a_scene_are_one_set_whatever_their_order);
    tcase_add_test(tests, files_of_other_directories_are_other_sets);
    tcase_add_test(tests, a_set_waits_until_each_of_its_files_is_still);
    tcase_add_test(tests, a_set_waits_a_while_for_optional_files);
    tcase_add_test(tests, incomplete_set_is_due_a_time_after_its_last_file);
    tcase_add_test(tests, joining_file_is_judged_with_files_of_earlier_jobs);
    tcase_add_test(tests, joining_file_waits_for_a_job_without_limit);
    tcase_add_test(tests, expired_set_waits_for_earlier_files_of_pipeline);
    tcase_add_test(tests, complete_set_waits_for_files_before_its_last);
    tcase_add_test(tests, nothing_expires_by_a_clock_that_was_set);
    tcase_add_test(tests, a_scan_without_files_has_no_sets);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
