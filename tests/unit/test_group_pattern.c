/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/group_pattern.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

static const struct pb_group_facts june = {.date = "2026-06-15T10:50:31.5Z", .tile = "T33XWJ"};

static struct pb_group_pattern *make(const char *pattern, const char *by)
{
    struct pb_group_wrong wrong;
    struct pb_group_pattern *group = pb_group_pattern_create(pattern, by, &wrong);
    ck_assert_msg(group != NULL, "%s", wrong.text);
    return group;
}

/* Returns the scene, "" = from metadata, NULL = no match. */
static const char *scene_of(const char *pattern, const char *by, const char *name,
                            const struct pb_group_facts *facts)
{
    static char scene[256];
    struct pb_group_pattern *group = make(pattern, by);
    bool fits = pb_group_pattern_fits(group, name, facts, scene);
    pb_group_pattern_destroy(group);
    return fits ? scene : NULL;
}

START_TEST(metadata_make_the_scene_with_groups_of_the_name)
{
    ck_assert_str_eq(scene_of(".*", "meta.date", "x", &june), "20260615");
    ck_assert_str_eq(scene_of(".*", "meta.tile", "x", &june), "T33XWJ");
    ck_assert_str_eq(scene_of(".*", "{meta.date}", "x", &june), "20260615");
    ck_assert_str_eq(scene_of(".*", "{meta.date:%Y-%j_%H%M%S}", "x", &june), "2026-166_105031");
    ck_assert_str_eq(
        scene_of("(?<place>\\w)_.*", "{place}_{meta.tile}_{meta.date:%Y%m}", "a_b", &june),
        "a_T33XWJ_202606");
}
END_TEST

START_TEST(without_the_facts_a_name_that_fits_asks)
{
    const struct pb_group_facts no_tile = {.date = "2026-06-15T10:50:31Z"};
    ck_assert_str_eq(scene_of("a.*", "meta.tile", "ab", NULL), "");
    ck_assert_str_eq(scene_of("a.*", "meta.tile", "ab", &no_tile), "");
    ck_assert_ptr_null(scene_of("a.*", "meta.tile", "b", &june));
    ck_assert_ptr_null(
        scene_of("(?<date>\\d{8})", "{date:%Y}_{meta.tile}", "20261301", NULL)); /* no month 13 */
    ck_assert_str_eq(scene_of("(?<scene>a).*", NULL, "ab", NULL), "a");
}
END_TEST

START_TEST(it_says_which_fact_it_lacks)
{
    const struct pb_group_facts none = {.date = ""};
    struct pb_group_pattern *group = make(".*", "{meta.tile}_{meta.date:%Y}");
    ck_assert(pb_group_pattern_asks(group));
    ck_assert_str_eq(pb_group_pattern_lacks(group, &none), "meta.tile");
    ck_assert_ptr_null(pb_group_pattern_lacks(group, &june));
    pb_group_pattern_destroy(group);
    group = make("(?<tile>.*)", "tile");
    ck_assert(!pb_group_pattern_asks(group));
    ck_assert_ptr_null(pb_group_pattern_lacks(group, &none));
    ck_assert_str_eq(pb_group_pattern_by(group), "{tile}");
    pb_group_pattern_destroy(group);
}
END_TEST

START_TEST(a_scene_of_metadata_is_no_hidden_folder)
{
    const struct pb_group_facts hidden = {.date = "", .tile = ".x"};
    ck_assert_ptr_null(scene_of(".*", "meta.tile", "x", &hidden));
    ck_assert_str_eq(scene_of(".*", "s{meta.tile}", "x", &hidden), "s.x");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("group_pattern");
    TCase *tests = tcase_create("group_pattern");
    tcase_add_test(tests, metadata_make_the_scene_with_groups_of_the_name);
    tcase_add_test(tests, without_the_facts_a_name_that_fits_asks);
    tcase_add_test(tests, it_says_which_fact_it_lacks);
    tcase_add_test(tests, a_scene_of_metadata_is_no_hidden_folder);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
