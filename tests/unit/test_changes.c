/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/scan.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>

static struct pb_changes changes;

static void unmake(void)
{
    pb_changes_fini(&changes);
}

START_TEST(test_name_covers_itself_and_what_is_below)
{
    pb_changes_add(&changes, "", "b");
    pb_changes_add(&changes, "a", "x");
    pb_changes_add(&changes, "c", "");
    pb_changes_add(&changes, "", "b");
    pb_changes_sort(&changes);
    ck_assert_uint_eq(changes.n, 3);
    const char *const covered[] = {"b", "b/c", "b/c/d", "a/x", "a/x/y", "c", "c/d"};
    for (size_t i = 0; i < sizeof covered / sizeof covered[0]; i++)
        ck_assert_msg(pb_changes_cover(&changes, covered[i]), "%s", covered[i]);
    const char *const others[] = {"", "a", "a/y", "a/xy", "bb", "b.tif", "d", "d/b"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!pb_changes_cover(&changes, others[i]), "%s", others[i]);
}
END_TEST

START_TEST(test_changed_inbox_covers_all)
{
    pb_changes_add(&changes, "", "a");
    pb_changes_add(&changes, "", "");
    ck_assert(changes.all);
    ck_assert_uint_eq(changes.n, 0);
    pb_changes_add(&changes, "", "a");
    ck_assert_uint_eq(changes.n, 0);
    ck_assert(pb_changes_cover(&changes, "z"));
}
END_TEST

START_TEST(test_events_of_few_files_stay_names)
{
    for (int i = 0; i < 10 * PB_CHANGES_MAX; i++)
        pb_changes_add(&changes, "", i % 2 ? "a" : "b");
    ck_assert(!changes.all);
    pb_changes_sort(&changes);
    ck_assert_uint_eq(changes.n, 2);
}
END_TEST

START_TEST(test_too_many_names_are_all)
{
    char name[32];
    for (int i = 0; i <= PB_CHANGES_MAX; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        pb_changes_add(&changes, "", name);
    }
    ck_assert(changes.all);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("changes");
    TCase *tcase = tcase_create("changes");
    tcase_add_checked_fixture(tcase, NULL, unmake);
    tcase_add_test(tcase, test_name_covers_itself_and_what_is_below);
    tcase_add_test(tcase, test_changed_inbox_covers_all);
    tcase_add_test(tcase, test_events_of_few_files_stay_names);
    tcase_add_test(tcase, test_too_many_names_are_all);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return run_suite(make_suite());
}
