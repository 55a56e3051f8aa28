/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/file_name.h"

#include "run_suite.h"

#include <stdio.h>
#include <string.h>

START_TEST(names_become_valid_and_short_with_their_suffix)
{
    char out[256], again[256], flood[256];
    pb_file_name_clean("a b-\xc3\xa9.tif", out);
    ck_assert_str_eq(out, "a b-\xc3\xa9.tif");
    pb_file_name_clean("a\nb\xff/\x7f\xc3.tif", out);
    ck_assert_int_eq(strncmp(out, "a_b____-", 8), 0);
    ck_assert_str_eq(out + strlen(out) - 4, ".tif");
    memset(flood, 'x', 250);
    (void)snprintf(flood + 250, 6, ".tif");
    pb_file_name_clean(flood, out);
    ck_assert_uint_eq(strlen(out), PB_FILE_NAME_BYTES_MAX);
    ck_assert_str_eq(out + PB_FILE_NAME_BYTES_MAX - 4, ".tif");
    for (int i = 0; i < 250; i += 2)
        (void)memcpy(flood + i, "\xc3\xa9", 2);
    pb_file_name_clean(flood, out);
    ck_assert_uint_le(strlen(out), PB_FILE_NAME_BYTES_MAX);
    ck_assert(pb_file_name_is_utf8(out));
    pb_file_name_clean(out, again);
    ck_assert_str_eq(out, again); /* valid: nothing left to clean */
}
END_TEST

START_TEST(names_that_differ_stay_different)
{
    char a[256], b[256], flood[256];
    pb_file_name_clean("a\x01.tif", a);
    pb_file_name_clean("a\x02.tif", b);
    ck_assert_str_ne(a, b);
    pb_file_name_clean("a_.tif", b);
    ck_assert_str_ne(a, b);
    memset(flood, 'x', 251);
    (void)snprintf(flood + 251, 5, ".tif");
    pb_file_name_clean(flood, a);
    flood[230] = 'y'; /* behind the cut */
    pb_file_name_clean(flood, b);
    ck_assert_str_ne(a, b);
}
END_TEST

START_TEST(a_scene_is_the_name_without_its_suffix_and_never_hidden)
{
    static const char *const cases[][2] = {{"/a/b/x.tif", "x"},
                                           {"x.y.tif", "x.y"},
                                           {".hidden", "_hidden"},
                                           {".x.tif", "_x"},
                                           {"x", "x"},
                                           {"..", "_"},
                                           {"/", "scene"},
                                           {"/in/a.tar.gz", "a"},
                                           {"a.TGZ", "a"},
                                           {"a.b.zip", "a.b"},
                                           {"S2A_x.SAFE.zip", "S2A_x"},
                                           {"a.safe.tar", "a"},
                                           {".zip", "_zip"},
                                           {"x.tif.zip", "x.tif"}};
    char out[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pb_file_name_scene(cases[i][0], out, sizeof out);
        ck_assert_str_eq(out, cases[i][1]);
    }
}
END_TEST

START_TEST(places_are_numbered_and_recognised)
{
    char out[256], flood[256];
    pb_file_name_place("a", 1, out);
    ck_assert_str_eq(out, "a");
    pb_file_name_place("a", 2, out);
    ck_assert_str_eq(out, "a~2");
    memset(flood, 'x', 255);
    flood[255] = '\0';
    pb_file_name_place(flood, 12, out);
    ck_assert_uint_eq(strlen(out), 255);
    ck_assert_str_eq(out + 252, "~12");
    ck_assert(pb_file_name_is_place(out, flood));
    ck_assert(pb_file_name_is_place("a", "a") && pb_file_name_is_place("a~2", "a"));
    ck_assert(pb_file_name_is_place("a~2", "a~2") && pb_file_name_is_place("a~2~3", "a~2"));
    static const char *const others[] = {"b", "a~", "a~x", "a~2x", "a~02", "ab~2", ".a~2", "a~1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!pb_file_name_is_place(others[i], "a"), "%s", others[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_name");
    TCase *tc = tcase_create("file_name");
    tcase_add_test(tc, names_become_valid_and_short_with_their_suffix);
    tcase_add_test(tc, names_that_differ_stay_different);
    tcase_add_test(tc, a_scene_is_the_name_without_its_suffix_and_never_hidden);
    tcase_add_test(tc, places_are_numbered_and_recognised);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
