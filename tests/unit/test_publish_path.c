/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Publishing where output.path leads, and what output.exists does to other inputs' products. */
#include "publish_fixture.h"
#include "run_suite.h"

#include <errno.h>
#include <stdbool.h>

static struct pb_publish_options dated(const char *scene, int n)
{
    struct pb_publish_options o = options_for(scene, n);
    o.path = "{sensor}/{datetime:%Y/%m}/{scene}/{pipeline}";
    o.sensor = "S2A";
    o.has_time = true;
    o.time_s = 1714737599; /* 2024-05-03T11:59:59Z */
    return o;
}

START_TEST(directories_above_appear_with_the_products)
{
    struct pb_publish_options o = dated("scene", 1);
    char path[PATH_MAX];
    struct pb_err err = {0};
    struct pb_publish *p = begin(&o);
    ck_assert_str_eq(pb_publish_place(p), "S2A/2024/05/scene");
    ck_assert(!there("S2A"));
    ck_assert_int_eq(commit(p, "new", &err, path), 0);
    pb_publish_close(p);
    ck_assert_str_eq(path, at("S2A/2024/05/scene/p"));
    ck_assert_str_eq(get("S2A/2024/05/scene/p/a.txt"), "new");
    publish(&o, "again");
    ck_assert_str_eq(get("S2A/2024/05/scene/p/a.txt"), "again");
    struct pb_publish_options other = dated("scene", 2);
    refuse(&other, PB_E_OUTPUT_EXISTS, "another input");
    other.time_s += 31 * 86400; /* another month: they do not meet */
    publish(&other, "june");
    ck_assert_str_eq(get("S2A/2024/06/scene/p/a.txt"), "june");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(a_jobs_products_are_found_whatever_their_date)
{
    struct pb_publish_options o = dated("scene", 1), other = dated("scene", 2);
    struct pb_manifest_job job = {"b", "scene", "p", o.path};
    char path[PATH_MAX];
    o.job = "a";
    other.job = "b";
    other.existing = PB_EXISTING_VERSION;
    publish(&o, "a");
    ck_assert_int_eq(pb_manifest_find(root, &job, path, NULL), -ENOENT);
    publish(&other, "b");
    ck_assert_int_eq(pb_manifest_find(root, &job, path, NULL), 0);
    ck_assert_str_eq(path, at("S2A/2024/05/scene~2/p"));
    job.pipeline = "q";
    ck_assert_int_eq(pb_manifest_find(root, &job, path, NULL), -ENOENT);
}
END_TEST

START_TEST(a_link_above_is_not_followed)
{
    struct pb_publish_options o = dated("scene", 1);
    ck_assert_int_eq(mkdir(at("elsewhere"), 0755), 0);
    ck_assert_int_eq(symlink("elsewhere", at("S2A")), 0);
    struct pb_publish *p = NULL;
    struct pb_err err = {0};
    ck_assert_int_lt(pb_publish_open(&o, &err, &p), 0);
    ck_assert_int_eq(unlink(at("S2A")), 0);
    p = begin(&o); /* the link follows later */
    ck_assert_int_eq(symlink("elsewhere", at("S2A")), 0);
    char path[PATH_MAX];
    ck_assert_int_lt(commit(p, "x", &err, path), 0);
    pb_publish_close(p);
    ck_assert(!there("elsewhere/2024"));
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(path_that_ends_at_the_scene_has_no_pipeline_folder)
{
    struct pb_publish_options o = options_for("scene", 1), q = o, other = options_for("scene", 2);
    o.path = other.path = "{pipeline}/{scene}";
    q.path = "{scene}_{pipeline}";
    publish(&o, "one");
    publish(&q, "two");
    ck_assert_str_eq(get("p/scene/a.txt"), "one");
    ck_assert_str_eq(get("scene_p/a.txt"), "two");
    publish(&o, "three");
    ck_assert_str_eq(get("p/scene/a.txt"), "three");
    refuse(&other, PB_E_OUTPUT_EXISTS, "another input");
    other.existing = PB_EXISTING_VERSION;
    publish(&other, "four");
    publish(&other, "five");
    ck_assert_str_eq(get("p/scene~2/a.txt"), "five");
    ck_assert(!there("p/scene~3"));
    struct pb_manifest_job job = {"job", "scene", "p", "{pipeline}/{scene}"};
    char path[PATH_MAX];
    ck_assert_int_eq(pb_manifest_find(root, &job, path, NULL), 0);
    struct pb_publish_options r = options_for("scene", 1);
    r.path = "p/{scene}"; /* another pipeline with the same place */
    r.pipeline = "r";
    refuse(&r, PB_E_OUTPUT_EXISTS, "pipeline p");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(replace_overwrites_another_input_of_the_pipeline)
{
    struct pb_publish_options o = options_for("scene", 1), other = options_for("scene", 2);
    publish(&o, "one");
    other.existing = PB_EXISTING_REPLACE;
    publish(&other, "two");
    ck_assert_str_eq(get("scene/p/a.txt"), "two");
    ck_assert(!there("scene~2"));
    refuse(&o, PB_E_OUTPUT_EXISTS, "another input"); /* it is the other's now */
    put(at("scene/p/notes"), "mine");
    refuse(&other, PB_E_OUTPUT_EXISTS, "notes"); /* files of others stay */
    ck_assert_int_eq(unlink(at("scene/p/notes")), 0);
    struct pb_publish_options flat = options_for("f", 1), newer = options_for("f", 2);
    flat.path = newer.path = "{scene}";
    newer.existing = PB_EXISTING_REPLACE;
    publish(&flat, "one");
    publish(&newer, "two");
    ck_assert_str_eq(get("f/a.txt"), "two");
    ck_assert_int_eq(mkdir(at("mine"), 0755), 0);
    struct pb_publish_options foreign = options_for("mine", 1);
    foreign.existing = PB_EXISTING_REPLACE;
    refuse(&foreign, PB_E_OUTPUT_EXISTS, "not made by pushbroom");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(same_content_is_same_input_under_any_name_and_time)
{
    struct pb_publish_options o = options_for("scene", 1), again = o;
    pb_input_id_set(&again.input, "scene.TIFF", 100, 77);
    memcpy(again.input.checksum, o.input.checksum, sizeof again.input.checksum);
    publish(&o, "one");
    publish(&again, "two");
    ck_assert_str_eq(get("scene/p/a.txt"), "two");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("publish_path");
    TCase *tc = tcase_create("publish_path");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, directories_above_appear_with_the_products);
    tcase_add_test(tc, a_jobs_products_are_found_whatever_their_date);
    tcase_add_test(tc, a_link_above_is_not_followed);
    tcase_add_test(tc, path_that_ends_at_the_scene_has_no_pipeline_folder);
    tcase_add_test(tc, replace_overwrites_another_input_of_the_pipeline);
    tcase_add_test(tc, same_content_is_same_input_under_any_name_and_time);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
