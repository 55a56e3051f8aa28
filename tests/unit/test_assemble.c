/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/assemble.h"

#include "config/base/arena.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/scene/scene_walk.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALL INT64_C(1000000000000) /* ms */

static const char text[] =
    "pipelines:\n"
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
    "    products: [statistics: {bands: [R, N]}]\n"
    "  days:\n"
    "    input:\n"
    "      group: 'm\\d\\.img'\n"
    "      by: meta.date\n"
    "      files: {R: {match: '*.img', nth: 1}, N: {match: '*.img', nth: 2}}\n"
    "      complete: {expire: 10s}\n"
    "    products: [statistics: {bands: [R, N]}]\n"
    "  rest:\n"
    "    input: {match: ['b*.img']}\n"
    "    products: [statistics: {}]\n"
    "  folders:\n"
    "    input:\n"
    "      scene: 'S*'\n"
    "      files: {R: '*R.tif', N: in/N.tif}\n"
    "      complete: {expire: 10s}\n"
    "    products: [statistics: {bands: [R, N]}]\n";

static struct pb_config *config;
static struct pb_assembly *assembly;
static struct pb_entry entry[16];
static size_t n;

static void make(void)
{
    struct pb_err_list errors = {0};
    ck_assert_msg(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config) == 0,
                  "%s", errors.err[0].msg);
    assembly = pb_assembly_create();
    n = 0;
}

static void end(void)
{
    pb_assembly_destroy(assembly);
    pb_config_destroy(config);
}

/* A file that arrived `age_ms` ago. */
static void add(const char *name, int64_t age_ms, bool is_settled)
{
    entry[n++] = (struct pb_entry){
        .path = name, .bytes = 3, .ctime_ns = (WALL - age_ms) * 1000000, .is_settled = is_settled};
}

static void group(bool trusted)
{
    const struct pb_assembly_input input = {
        .config = config, .entry = entry, .n = n, .wall_ms = WALL, .wall_is_trusted = trusted};
    ck_assert_int_eq(pb_assembly_group(assembly, &input), 0);
}

static size_t judge(bool trusted)
{
    group(trusted);
    ck_assert_int_eq(pb_assembly_judge(assembly, config), 0);
    return pb_assembly_count(assembly);
}

static const struct pb_assembled *at(size_t i)
{
    return pb_assembly_at(assembly, i);
}

START_TEST(files_of_a_scene_are_one_set_whatever_their_order)
{
    add("a2_N.tif", 1, true);
    add("a1_R.tif", 2, true);
    add("a2_X.tif", 3, true);
    add("a1_B.tif", 4, true);
    add("a1_N.tif", 5, true);
    ck_assert_uint_eq(judge(true), 3);
    const struct pb_assembled *set = at(0);
    ck_assert_str_eq(set->name, "a1");
    ck_assert_str_eq(set->pipeline, "first");
    ck_assert_uint_eq(set->n, 2);
    ck_assert_uint_eq(set->bytes, 6);
    ck_assert_str_eq(pb_assembled_entry(set, 0)->path, "a1_N.tif");
    ck_assert_int_eq(set->state, PB_SCENE_READY);
    ck_assert_str_eq(set->missing, "");
    set = at(1);
    ck_assert_str_eq(set->name, "a2");
    ck_assert_int_eq(set->state, PB_SCENE_INCOMPLETE);
    ck_assert_ptr_nonnull(strstr(set->missing, "1 of 2 files of the scene is missing: band R"));
    ck_assert_str_eq(at(2)->pipeline, "second");
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
        due += at(i)->state == PB_SCENE_READY;
    ck_assert_uint_eq(due, 1);
}
END_TEST

START_TEST(a_set_waits_until_each_of_its_files_is_still)
{
    add("a1_R.tif", 1, true);
    add("a1_N.tif", 1, true);
    add("a1_X.tif", 1, false); /* no band, but on its way */
    ck_assert_uint_eq(judge(true), 1);
    ck_assert_int_eq(at(0)->state, PB_SCENE_UNSETTLED);
}
END_TEST

START_TEST(incomplete_set_is_due_a_time_after_its_last_file)
{
    add("a1_R.tif", 9000, true);
    add("a1_X.tif", 60000, true);
    add("a2_R.tif", 10000, true);
    ck_assert_uint_eq(judge(true), 2);
    ck_assert_int_eq(at(0)->state, PB_SCENE_INCOMPLETE);
    ck_assert_int_eq(at(1)->state, PB_SCENE_READY);
    ck_assert_str_ne(at(1)->missing, "");
    ck_assert_int_eq(pb_assembly_due_ms(assembly, WALL), 1000);
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
    ck_assert_str_eq(at(0)->name, "t1_202606");
    ck_assert_int_eq(at(0)->state, PB_SCENE_READY);
    ck_assert_int_eq(at(1)->state, PB_SCENE_INCOMPLETE);
    ck_assert_str_eq(at(1)->missing, "1 optional file of the scene may still arrive");
    ck_assert_int_eq(at(2)->state, PB_SCENE_READY);
    ck_assert_str_eq(at(2)->missing, "");
    ck_assert_str_eq(at(3)->name, "t3_202607");
    ck_assert_int_eq(pb_assembly_due_ms(assembly, WALL), 1000);
}
END_TEST

static void know(size_t i, const char *name, const char *busy)
{
    struct pb_scene_earlier earlier = {.n = name != NULL};
    (void)snprintf(earlier.busy, sizeof earlier.busy, "%s", busy);
    earlier.name = calloc(1, sizeof *earlier.name);
    ck_assert_ptr_nonnull(earlier.name);
    earlier.name[0] = name ? strdup(name) : NULL;
    pb_assembly_know(assembly, i, &earlier);
}

START_TEST(joining_file_is_judged_with_files_of_earlier_jobs)
{
    add("t1_20260609.tif", 1, true);
    add("t2_20260609.tif", 1, true);
    group(true);
    ck_assert_int_eq(at(0)->reopen_ms, 3600000);
    know(0, "t1_20260604.tif", "");
    know(1, "t2_20260609.tif", ""); /* the same file again */
    ck_assert_int_eq(pb_assembly_judge(assembly, config), 0);
    ck_assert_int_eq(at(0)->state, PB_SCENE_READY);
    ck_assert_str_eq(at(0)->missing, "");
    ck_assert_int_eq(at(1)->state, PB_SCENE_INCOMPLETE);
}
END_TEST

START_TEST(joining_file_waits_for_a_job_without_limit)
{
    add("t1_20260609.tif", 60000, true);
    group(true);
    know(0, NULL, "20261121-082850-aaaa");
    ck_assert_int_eq(pb_assembly_judge(assembly, config), 0);
    ck_assert_int_eq(at(0)->state, PB_SCENE_INCOMPLETE);
    ck_assert_str_eq(at(0)->missing,
                     "1 file to be joined with those of job 20261121-082850-aaaa when it is over");
    ck_assert_int_eq(at(0)->due_ms, 0);
    ck_assert_int_eq(pb_assembly_due_ms(assembly, WALL), -1);
}
END_TEST

/* In the pipeline `days` metadata determine the set; they are not known of m1.img. */
static const struct pb_described june = {.facts = {.date = "2026-06-15T10:50:31Z"}};

static const struct pb_described *find_day(void *user, const char *path, uint64_t digest)
{
    (void)user;
    (void)digest;
    return strcmp(path, "m1.img") == 0 ? NULL : &june;
}

static void group_days(void)
{
    const struct pb_entry_facts facts = {find_day, NULL};
    const struct pb_assembly_input input = {.config = config,
                                            .entry = entry,
                                            .n = n,
                                            .facts = &facts,
                                            .wall_ms = WALL,
                                            .wall_is_trusted = true};
    ck_assert_int_eq(pb_assembly_group(assembly, &input), 0);
}

static void judge_days(void)
{
    group_days();
    ck_assert_int_eq(pb_assembly_judge(assembly, config), 0);
}

/* The verdict of the last listing is copied to the texts of this one. */
START_TEST(judging_again_without_memory_fails)
{
    add("a1_R.tif", 1, true);
    judge_days();
    group_days();
    pb_arena_fail_after(0);
    ck_assert_int_eq(pb_assembly_judge(assembly, config), -ENOMEM);
    pb_arena_fail_after(-1);
    judge_days();
    ck_assert_int_eq(at(0)->state, PB_SCENE_INCOMPLETE);
    ck_assert_str_ne(at(0)->missing, "");
}
END_TEST

START_TEST(expired_set_waits_for_earlier_files_of_pipeline)
{
    static const struct {
        const char *name;
        int64_t age_ms;
        enum pb_scene_state state;
    } cases[] = {{"m1.img", 60000, PB_SCENE_INCOMPLETE},
                 {"m1.img", 50000, PB_SCENE_INCOMPLETE},
                 {"m1.img", 49999, PB_SCENE_READY},
                 {"b1.img", 60000, PB_SCENE_READY}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        n = 0;
        add(cases[i].name, cases[i].age_ms, true);
        add("m2.img", 60000, true); /* it expired 50 s ago */
        judge_days();
        const struct pb_assembled *set = pb_assembly_of(assembly, 1);
        ck_assert_str_eq(set->name, "20260615");
        ck_assert_int_eq(set->state, cases[i].state);
        ck_assert_int_eq(pb_assembly_due_ms(assembly, WALL), -1);
    }
}
END_TEST

START_TEST(complete_set_waits_for_files_before_its_last)
{
    for (int later = 0; later < 2; later++) {
        n = 0;
        add("m1.img", 50000 - later, true);
        add("m2.img", 60000, true);
        add("m3.img", 50000, true);
        judge_days();
        ck_assert_int_eq(pb_assembly_of(assembly, 1)->state,
                         later ? PB_SCENE_READY : PB_SCENE_UNSETTLED);
        ck_assert_int_eq(pb_assembly_of(assembly, 0)->state, PB_SCENE_NEEDS_FACTS);
    }
}
END_TEST

/* Each entry is a member of one scene; single ones are first, in the order of the entries. */
START_TEST(each_entry_is_in_one_scene)
{
    add("a1_N.tif", 1, true);
    add("a1_R.tif", 1, true);
    add("b1.img.msk", 1, true);
    add("m1.img", 1, true);
    add("m1.img.msk", 1, true);
    add("x.ok", 1, true);
    add("x.unknown", 1, false);
    entry[5].is_companion = true;
    judge_days();
    ck_assert_uint_eq(pb_assembly_count(assembly), 4);
    ck_assert_int_eq(at(0)->form, PB_FORM_ORPHAN);
    ck_assert_int_eq(at(1)->form, PB_FORM_UNASSIGNED);
    ck_assert_uint_eq(at(1)->n, 2);
    ck_assert_str_eq(pb_assembled_entry(at(1), 0)->path, "m1.img");
    ck_assert_int_eq(at(2)->form, PB_FORM_ALONE);
    ck_assert_int_eq(at(2)->state, PB_SCENE_UNSETTLED);
    ck_assert_str_eq(at(2)->pipeline, "");
    ck_assert_int_eq(at(3)->form, PB_FORM_GROUP);
    ck_assert_ptr_eq(pb_assembly_of(assembly, 0), at(3));
    ck_assert_ptr_null(pb_assembly_of(assembly, 5));
}
END_TEST

static size_t group_archive(const char *pipeline)
{
    const struct pb_assembly_input input = {.config = config,
                                            .listing = PB_LISTING_ARCHIVE,
                                            .name = "name",
                                            .only = pb_config_pipeline(config, pipeline),
                                            .entry = entry,
                                            .n = n};
    ck_assert_int_eq(pb_assembly_group(assembly, &input), 0);
    return pb_assembly_count(assembly);
}

/* The paths of the scene's files in order, each with a blank after it. */
static const char *paths(const struct pb_assembled *scene)
{
    static char out[400];
    struct pb_scene_walk walk;
    out[0] = '\0';
    ck_assert_int_eq(pb_assembled_walk(scene, &walk), 0);
    for (size_t i = 0; i < walk.n; i++) {
        const size_t used = strlen(out);
        (void)snprintf(out + used, sizeof out - used, "%s ", walk.entry[i].path);
        ck_assert_ptr_nonnull(strstr(entry[walk.entry[i].number].path, walk.entry[i].path));
    }
    pb_scene_walk_close(&walk);
    return out;
}

START_TEST(scenes_of_an_archive_are_its_matching_folders)
{
    add("S2.SAFE/R.tif", 1, true);
    add("index.html", 1, true);
    add("S1/in/N.tif", 1, true);
    add("other/R.tif", 1, true);
    add("S2.SAFE/in/N.tif", 1, true);
    add("S2.SAFE", 1, true);
    entry[5].is_folder = true;
    ck_assert_uint_eq(group_archive("folders"), 2);
    ck_assert_str_eq(at(0)->name, "S2");
    ck_assert_str_eq(paths(at(0)), "R.tif in/N.tif ");
    ck_assert_str_eq(at(1)->name, "S1");
    ck_assert_str_eq(paths(at(1)), "in/N.tif ");
    ck_assert_ptr_null(pb_assembly_of(assembly, 1));
    ck_assert_ptr_null(pb_assembly_why_none(assembly));
}
END_TEST

START_TEST(archive_without_such_a_folder_is_one_scene)
{
    add("x/in/N.tif", 1, true);
    add("x/R.tif", 1, true);
    ck_assert_uint_eq(group_archive("folders"), 1);
    ck_assert_str_eq(at(0)->name, "name");
    ck_assert_str_eq(paths(at(0)), "R.tif in/N.tif ");
    add("R.tif", 1, true); /* a file at the top */
    ck_assert_uint_eq(group_archive("folders"), 1);
    ck_assert_str_eq(paths(at(0)), "R.tif x/R.tif x/in/N.tif ");
    entry[2].path = "y/R.tif";
    ck_assert_uint_eq(group_archive("folders"), 0);
    ck_assert_str_eq(pb_assembly_why_none(assembly),
                     "input.scene (S*) fits none of the folders in it, x, y, ...");
    n = 0;
    ck_assert_uint_eq(group_archive("folders"), 0);
    ck_assert_str_eq(pb_assembly_why_none(assembly), "it holds no files");
}
END_TEST

START_TEST(scenes_of_a_group_share_other_files_of_an_archive)
{
    add("x/a2_N.tif", 1, true);
    add("x/a1_R.tif", 1, true);
    add("x/notes.txt", 1, true);
    add("x/y/a2_R.tif", 1, true);
    ck_assert_uint_eq(group_archive("first"), 2);
    ck_assert_str_eq(at(0)->name, "a2");
    ck_assert_str_eq(paths(at(0)), "a2_N.tif notes.txt y/a2_R.tif ");
    ck_assert_str_eq(paths(at(1)), "a1_R.tif notes.txt ");
    ck_assert_uint_eq(group_archive("second"), 0);
    ck_assert_str_eq(pb_assembly_why_none(assembly), "input.group fits none of the files in it");
}
END_TEST

START_TEST(incomplete_folder_waits_as_long_as_a_set)
{
    struct pb_scene_entry inside[] = {{.path = "R.tif"}, {.path = "in/N.tif"}};
    struct pb_scene_walk walk = {
        .fd = -1, .entry = inside, .n = 1, .youngest_ns = (WALL - 9999) * 1000000};
    const struct pb_pipeline_config *pipeline = pb_config_pipeline(config, "folders");
    ck_assert_int_eq(pb_assembly_folder(assembly, config, pipeline, &walk, "S1", WALL), 0);
    ck_assert_uint_eq(pb_assembly_count(assembly), 1);
    ck_assert_int_eq(at(0)->state, PB_SCENE_INCOMPLETE);
    ck_assert_str_eq(at(0)->missing, "1 of 2 files of the scene is missing: band N (in/N.tif)");
    ck_assert_int_eq(pb_assembly_due_ms(assembly, WALL), 1);
    ck_assert_int_eq(pb_assembly_folder(assembly, config, pipeline, &walk, "S1", WALL + 1), 0);
    ck_assert_int_eq(at(0)->state, PB_SCENE_READY);
    walk.n = 2;
    ck_assert_int_eq(pb_assembly_folder(assembly, config, pipeline, &walk, "S1", WALL), 0);
    ck_assert_int_eq(at(0)->state, PB_SCENE_READY);
    ck_assert_str_eq(at(0)->missing, "");
}
END_TEST

START_TEST(nothing_expires_by_a_clock_that_was_set)
{
    add("a1_R.tif", 60000, true);
    ck_assert_uint_eq(judge(false), 1);
    ck_assert_int_eq(at(0)->state, PB_SCENE_INCOMPLETE);
    ck_assert_int_eq(pb_assembly_due_ms(assembly, WALL), -1);
}
END_TEST

START_TEST(a_scan_without_files_has_no_sets)
{
    add("a1_R.tif", 1, true);
    ck_assert_uint_eq(judge(true), 1);
    n = 0;
    ck_assert_uint_eq(judge(true), 0);
    ck_assert_ptr_null(pb_assembly_of(assembly, 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("assemble");
    TCase *tests = tcase_create("assemble");
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
    tcase_add_test(tests, each_entry_is_in_one_scene);
    tcase_add_test(tests, judging_again_without_memory_fails);
    tcase_add_test(tests, scenes_of_an_archive_are_its_matching_folders);
    tcase_add_test(tests, archive_without_such_a_folder_is_one_scene);
    tcase_add_test(tests, scenes_of_a_group_share_other_files_of_an_archive);
    tcase_add_test(tests, incomplete_folder_waits_as_long_as_a_set);
    tcase_add_test(tests, nothing_expires_by_a_clock_that_was_set);
    tcase_add_test(tests, a_scan_without_files_has_no_sets);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
