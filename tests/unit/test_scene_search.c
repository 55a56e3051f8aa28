/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_search.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/scene/scene_files.h"
#include "run_suite.h"

#include <stdio.h>
#include <string.h>

static const char text[] =
    "pipelines:\n"
    "  counted:\n"
    "    input:\n"
    "      scene: 's*'\n"
    "      files: {R: {match: '*', nth: 1}, G: {match: '*', nth: 2}, B: {match: 'x*', nth: 3}}\n"
    "    products: [statistics: {bands: [R, G, B]}]\n";

static struct pb_config *config;
static struct pb_scene_entry entry[PB_SCENE_ENTRIES_MAX];
static struct pb_scene_found found;
static struct pb_err err;

static void make(void)
{
    struct pb_err_list errors = {0};
    ck_assert_msg(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config) == 0,
                  "%s", errors.err[0].msg);
}

static void end(void)
{
    pb_config_destroy(config);
}

static int search(size_t n)
{
    const struct pb_scene_walk walk = {.fd = -1, .entry = entry, .n = n};
    err = (struct pb_err){0};
    return pb_scene_search(&config->pipelines[0], &walk, "/in/s1", "s1", &err, &found);
}

/* Searches among files with these names, which end with NULL. */
static int search_among(const char *const *name)
{
    size_t n = 0;
    for (; name[n] != NULL; n++)
        entry[n] = (struct pb_scene_entry){.path = (char *)name[n]};
    return search(n);
}

START_TEST(test_sidecars_are_not_counted)
{
    const char *const name[] = {"X2.TFW", "d/x3.tif", "x1.tif", "x1.tif.aux.xml", "x1_RPC.TXT",
                                "x2.tif", "x3.prj",   "x4.msk", "x4.tif.msk.OVR", NULL};
    ck_assert_int_eq(search_among(name), 0);
    ck_assert_str_eq(found.file[0]->path, "x1.tif");
    ck_assert_str_eq(found.file[1]->path, "x2.tif");
    ck_assert_str_eq(found.file[2]->path, "d/x3.tif");
    ck_assert_uint_eq(found.n_left_out, 3 + 4); /* also x4.msk and x4.tif.msk.OVR: no main file */
}
END_TEST

/* Other names must not decide whether x4.tfw is counted. */
START_TEST(test_sidecars_of_each_other_are_not_counted)
{
    const char *const name[] = {"x.prj", "x1.tif", "x2.tif", "x3.tif", NULL};
    const char *const more[] = {"x.prj", "x.tfw", "x1.tif", "x2.tif", "x3.tif", NULL};
    const char *const between[] = {"a/x.prj", "b/x0.tif", "b/x1.tif", "x.tfw", "x3.tif", NULL};
    ck_assert_int_eq(search_among(name), 0);
    ck_assert_str_eq(found.file[0]->path, "x.prj");
    ck_assert_int_eq(search_among(more), 0);
    ck_assert_str_eq(found.file[0]->path, "x1.tif");
    ck_assert_int_eq(search_among(between), 0);
    ck_assert_str_eq(found.file[0]->path, "b/x0.tif");
    ck_assert_uint_eq(found.n_left_out, 1 + 2);
}
END_TEST

/* Comparing each name with each other one would take minutes. */
START_TEST(test_many_counted_files_are_listed_in_time)
{
    static char name[PB_SCENE_ENTRIES_MAX][24];
    for (size_t i = 0; i < PB_SCENE_ENTRIES_MAX; i++) {
        (void)snprintf(name[i], sizeof name[i], "x%05zu.prj", i);
        entry[i] = (struct pb_scene_entry){.path = name[i]};
    }
    ck_assert_int_eq(search(PB_SCENE_ENTRIES_MAX), 0);
    ck_assert_str_eq(found.file[2]->path, "x00002.prj");
    ck_assert_uint_eq(found.n_left_out, 2 * PB_SCENE_ENTRIES_MAX - 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scene_search");
    TCase *tests = tcase_create("scene_search");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, test_sidecars_are_not_counted);
    tcase_add_test(tests, test_sidecars_of_each_other_are_not_counted);
    tcase_add_test(tests, test_many_counted_files_are_listed_in_time);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
