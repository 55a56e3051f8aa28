/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/output/output_path.h"
#include "run_suite.h"

#include <string.h>

static const struct pb_output_facts all = {.scene = "S2A_x",
                                           .pipeline = "ndvi",
                                           .sensor = "S2A",
                                           .has_time = true,
                                           .time_s = 1714737599}; /* 2024-05-03T11:59:59Z */

static void expect(const char *path, const char *parents, const char *scene, const char *inner)
{
    struct pb_err err = {0};
    struct pb_output_place place;
    ck_assert_msg(pb_output_path_expand(path, &all, &err, &place) == 0, "%s", err.msg);
    ck_assert_str_eq(place.parents, parents);
    ck_assert_str_eq(place.scene, scene);
    ck_assert_str_eq(place.inner, inner);
}

START_TEST(values_take_the_place_of_their_names)
{
    expect("{scene}/{pipeline}", "", "S2A_x", "ndvi");
    expect("{sensor}/{datetime:%Y/%m/%d}/{scene}/{pipeline}", "S2A/2024/05/03", "S2A_x", "ndvi");
    expect("{pipeline}/{scene}", "ndvi", "S2A_x", "");
    expect("all/{datetime}_{scene}_{pipeline}", "all", "20240503T115959_S2A_x_ndvi", "");
    expect("{datetime:%Y-%j}/{scene}/out", "2024-124", "S2A_x", "out");
}
END_TEST

START_TEST(what_leads_elsewhere_is_refused)
{
    static const char *const wrong[][2] = {
        {"", "empty component"},
        {"/a/{scene}", "absolute"},
        {"../{scene}", "begins with '.'"},
        {"a/../{scene}", "begins with '.'"},
        {"a//{scene}", "empty component"},
        {"{scene}/", "empty component"},
        {".a/{scene}", "begins with '.'"},
        {"a\n/{scene}", "control character"},
        {"a\xc2\x85/{scene}", "control character"},
        {"{scene}\xe2\x80\xae", "control character"},
        {"{pipeline}", "{scene}"},
        {"{scene}/{scene}", "several"},
        {"{scene}/a/b", "several components after"},
        {"{scene", "brace"},
        {"scene}", "brace"},
        {"{sensors}/{scene}", "{sensors}"},
        {"{scene:%Y}", "format"},
        {"{datetime:%s}/{scene}", "'%s'"},
        {"{product}/{scene}", "{product}"},
    };
    char why[200];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!pb_output_path_check(wrong[i][0], why), "'%s' is taken", wrong[i][0]);
        ck_assert_msg(strstr(why, wrong[i][1]) != NULL, "'%s': %s", wrong[i][0], why);
    }
}
END_TEST

START_TEST(values_make_no_directories_of_their_own)
{
    static const char *const sensors[] = {"", "a/b", "..", ".a", "a\tb", "/"};
    struct pb_output_place place;
    for (size_t i = 0; i < sizeof sensors / sizeof sensors[0]; i++) {
        struct pb_output_facts facts = all;
        struct pb_err err = {0};
        facts.sensor = sensors[i];
        ck_assert_int_lt(pb_output_path_expand("{sensor}/{scene}", &facts, &err, &place), 0);
        ck_assert_int_eq(err.code, PB_E_OUTPUT_PATH);
    }
}
END_TEST

START_TEST(what_the_scene_does_not_tell_is_an_error)
{
    const struct pb_output_facts bare = {.scene = "x", .pipeline = "p"};
    struct pb_output_place place;
    struct pb_err err = {0};
    ck_assert_int_lt(pb_output_path_expand("{sensor}/{scene}", &bare, &err, &place), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "{sensor}"));
    err = (struct pb_err){0};
    ck_assert_int_lt(pb_output_path_expand("{datetime:%Y}/{scene}", &bare, &err, &place), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "{datetime}"));
}
END_TEST

START_TEST(names_of_files_have_the_product)
{
    struct pb_output_facts facts = all;
    struct pb_err err = {0};
    char name[256], why[200];
    facts.product = "cog";
    ck_assert_int_eq(pb_output_name_expand("{scene}_{product}", &facts, &err, name), 0);
    ck_assert_str_eq(name, "S2A_x_cog");
    ck_assert(!pb_output_name_check("a/{scene}", why));
    ck_assert(!pb_output_name_check(".{scene}", why));
    ck_assert(pb_output_name_check("{tile}_{scene}", why));
    ck_assert(!pb_output_path_check("{scene}/{tile}", why));
    ck_assert(pb_output_name_check("{sensor}_{datetime:%Y%m%d}_{product}", why));
}
END_TEST

static bool fits(const char *path, const char *relative)
{
    const struct pb_output_facts known = {.scene = "S2*", .pipeline = "ndvi"};
    struct pb_output_pattern pattern;
    pb_output_path_pattern(path, &known, &pattern);
    return pb_output_path_fits(&pattern, relative);
}

START_TEST(a_pattern_fits_whatever_the_metadata_tells)
{
    const char *path = "{sensor}/{datetime:%Y/%m}/{scene}/{pipeline}";
    ck_assert(fits(path, "S2A/2024/05/S2*/ndvi"));
    ck_assert(fits(path, "S2A/2024/05/S2*~12/ndvi"));
    ck_assert(!fits(path, "S2A/2024/05/S2A/ndvi")); /* the scene's '*' is a letter */
    ck_assert(!fits(path, "S2A/2024/05/S2*/ndvi~2"));
    ck_assert(!fits(path, "S2A/2024/S2*/ndvi"));
    ck_assert(!fits(path, "S2A/2024/05/S2*/ndvi/x"));
    ck_assert(!fits(path, "../2024/05/S2*/ndvi"));
    ck_assert(!fits(path, "S2A/2024/05/S2*"));
    ck_assert(fits("{scene}_{pipeline}", "S2*_ndvi"));
    ck_assert(fits("{scene}_{pipeline}", "S2*_ndvi~2"));
    ck_assert(!fits("{scene}_{pipeline}", "S2*_ndvi~"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("output_path");
    TCase *tc = tcase_create("output_path");
    tcase_add_test(tc, values_take_the_place_of_their_names);
    tcase_add_test(tc, what_leads_elsewhere_is_refused);
    tcase_add_test(tc, values_make_no_directories_of_their_own);
    tcase_add_test(tc, what_the_scene_does_not_tell_is_an_error);
    tcase_add_test(tc, names_of_files_have_the_product);
    tcase_add_test(tc, a_pattern_fits_whatever_the_metadata_tells);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
