/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "pipeline/archive/archive_names.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

START_TEST(names_are_made_plain)
{
    static const char *const cases[][2] = {
        {"a", "a"},         {"a/b.tif", "a/b.tif"},   {"./a//b/./c/", "a/b/c"},
        {"a/..b", "a/..b"}, {"...", "..."},           {"a b/\xc3\xa4", "a b/\xc3\xa4"},
        {"a\\b", "a\\b"},   {"./.hidden", ".hidden"}, {"1:x", "1:x"}};
    char out[256];
    const char *why;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(pb_archive_member_name(cases[i][0], 4, out, sizeof out, &why), "%s: %s",
                      cases[i][0], why);
        ck_assert_str_eq(out, cases[i][1]);
    }
}
END_TEST

START_TEST(names_that_lead_elsewhere_are_refused)
{
    static const char *const cases[][2] = {{"/etc/passwd", "absolute"},
                                           {"\\\\host\\x", "absolute"},
                                           {"C:\\x", "absolute"},
                                           {"c:/x", "absolute"},
                                           {"..", "out of the archive"},
                                           {"../x", "out of the archive"},
                                           {"a/../b", "out of the archive"},
                                           {"a/..", "out of the archive"},
                                           {"./..", "out of the"},
                                           {"", "empty"},
                                           {"./", "empty"},
                                           {".", "empty"},
                                           {"a/b/c/d/e", "limits.archive_depth"}};
    char out[256];
    const char *why;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(!pb_archive_member_name(cases[i][0], 4, out, sizeof out, &why), "%s",
                      cases[i][0]);
        ck_assert_msg(strstr(why, cases[i][1]) != NULL, "%s: %s", cases[i][0], why);
    }
}
END_TEST

START_TEST(names_fit_into_what_there_is)
{
    char name[300], out[300];
    const char *why;
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    ck_assert(pb_archive_member_name(name, 4, out, sizeof out, &why));
    ck_assert(!pb_archive_member_name(name, 4, out, 255, &why));
    name[255] = 'n';
    name[256] = '\0';
    ck_assert(!pb_archive_member_name(name, 4, out, sizeof out, &why));
    ck_assert_ptr_nonnull(strstr(why, "too long"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("archive_names");
    TCase *all = tcase_create("all");
    tcase_add_test(all, names_are_made_plain);
    tcase_add_test(all, names_that_lead_elsewhere_are_refused);
    tcase_add_test(all, names_fit_into_what_there_is);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
