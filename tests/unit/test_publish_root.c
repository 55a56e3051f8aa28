/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/publish/publish_root.h"

#include "publish_fixture.h"
#include "run_suite.h"

#include <errno.h>

#define ID "0f3c2a51-1111-4222-8333-444455556666"

static struct pb_publish_options shared_options(const char *scene)
{
    struct pb_publish_options o = options_for(scene, 1);
    o.root = ID;
    return o;
}

/* Replaces root by an empty directory, as when its file system is unmounted; returns the new path
 * of the former one. */
static const char *unmount(void)
{
    static char away[PATH_MAX + 8];
    (void)snprintf(away, sizeof away, "%s.away", root);
    ck_assert_int_eq(rename(root, away), 0);
    ck_assert_int_eq(mkdir(root, 0755), 0);
    return away;
}

static void mount_again(const char *away)
{
    ck_assert_msg(rmdir(root) == 0, "something was written into the empty directory");
    ck_assert_int_eq(rename(away, root), 0);
}

START_TEST(products_without_a_token_are_refused)
{
    const struct pb_publish_options o = shared_options("scene");
    refuse(&o, PB_E_OUTPUT_ROOT, "has no .pushbroom-root: mount the file system");
    refuse(&o, PB_E_OUTPUT_ROOT, "write this line into that file: " ID);
    ck_assert_int_eq(hidden(), 0);
    ck_assert_int_eq(rmdir(root), 0);
    refuse(&o, PB_E_OUTPUT_ROOT, "No such file or directory");
    ck_assert_int_eq(mkdir(root, 0755), 0); /* it was not made by pushbroom */
}
END_TEST

START_TEST(products_of_another_place_are_refused)
{
    const struct pb_publish_options o = shared_options("scene");
    static const char *const other[] = {"0f3c2a51-1111-4222-8333-444455556667\n", ID ID ID "\n",
                                        ID "\nmore\n", " \n", "0f3c"};
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        put(at(PB_PUBLISH_ROOT_FILE), other[i]);
        refuse(&o, PB_E_OUTPUT_ROOT, "of another place");
    }
    ck_assert_int_eq(unlink(at(PB_PUBLISH_ROOT_FILE)), 0);
    put(at("token"), ID "\n");
    ck_assert_int_eq(symlink("token", at(PB_PUBLISH_ROOT_FILE)), 0);
    refuse(&o, PB_E_OUTPUT_ROOT, "of another place");
    ck_assert_int_eq(unlink(at(PB_PUBLISH_ROOT_FILE)), 0);
    ck_assert_int_eq(mkfifo(at(PB_PUBLISH_ROOT_FILE), 0600), 0);
    refuse(&o, PB_E_OUTPUT_ROOT, "of another place");
}
END_TEST

START_TEST(token_lets_products_be_published)
{
    const struct pb_publish_options o = shared_options("scene");
    ck_assert_int_eq(pb_publish_root_make(root, ID, NULL), 0);
    ck_assert_int_eq(pb_publish_root_make(root, ID, NULL), 0);
    ck_assert_str_eq(get(PB_PUBLISH_ROOT_FILE), ID "\n");
    publish(&o, "products");
    put(at(PB_PUBLISH_ROOT_FILE), "\n " ID " \r\n"); /* written by an operator */
    ck_assert_int_eq(pb_publish_root_look(root, ID, NULL), 0);
    publish(&o, "again");
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    ck_assert_int_eq(pb_publish_fence(root, "job", 1), 0);
    ck_assert_int_eq(hidden(), 1); /* the token */
}
END_TEST

START_TEST(products_stay_in_the_directory_that_was_checked)
{
    const struct pb_publish_options o = shared_options("scene");
    struct pb_err err = {0};
    char path[PATH_MAX];
    ck_assert_int_eq(pb_publish_root_make(root, ID, NULL), 0);
    struct pb_publish *p = begin(&o);
    write_product(p, "late");
    const char *away = unmount();
    const struct pb_manifest_file file = {"cog", "", "a.txt", "text/plain", 4, "", 0};
    ck_assert_msg(pb_publish_commit(p, &file, 1, &err, path) == 0, "%s", err.msg);
    pb_publish_close(p);
    refuse(&o, PB_E_OUTPUT_ROOT, "has no .pushbroom-root");
    mount_again(away);
    ck_assert_str_eq(get("scene/p/a.txt"), "late");
}
END_TEST

START_TEST(token_of_another_id_is_never_changed)
{
    struct pb_err err = {0};
    put(at(PB_PUBLISH_ROOT_FILE), "other\n");
    ck_assert_int_eq(pb_publish_root_make(root, ID, &err), -ENODEV);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_ROOT);
    ck_assert_str_eq(get(PB_PUBLISH_ROOT_FILE), "other\n");
}
END_TEST

START_TEST(interrupted_token_is_completed)
{
    put(at(PB_PUBLISH_ROOT_FILE), "");
    ck_assert_int_eq(pb_publish_root_look(root, ID, NULL), -ENODEV);
    ck_assert_int_eq(pb_publish_root_make(root, ID, NULL), 0);
    ck_assert_int_eq(pb_publish_root_look(root, ID, NULL), 0);
}
END_TEST

START_TEST(other_products_need_no_token)
{
    const struct pb_publish_options o = options_for("scene", 1);
    publish(&o, "products");
    ck_assert(!there(PB_PUBLISH_ROOT_FILE));
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, products_without_a_token_are_refused);
    tcase_add_test(tests, products_of_another_place_are_refused);
    tcase_add_test(tests, token_lets_products_be_published);
    tcase_add_test(tests, products_stay_in_the_directory_that_was_checked);
    tcase_add_test(tests, token_of_another_id_is_never_changed);
    tcase_add_test(tests, interrupted_token_is_completed);
    tcase_add_test(tests, other_products_need_no_token);
}

int main(void)
{
    Suite *suite = suite_create("publish_root");
    TCase *tests = tcase_create("publish_root");
    tcase_set_timeout(tests, 60);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
