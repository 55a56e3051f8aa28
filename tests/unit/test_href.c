/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/href.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

START_TEST(test_part_escapes_all_but_unreserved)
{
    char href[64];
    ck_assert_uint_eq(pb_href_part("a b:c%\xc3\xa4.tif", href, sizeof href), 22);
    ck_assert_str_eq(href, "a%20b%3Ac%25%C3%A4.tif");
    (void)pb_href_part("../x_~-Z9", href, sizeof href);
    ck_assert_str_eq(href, "..%2Fx_~-Z9");
}
END_TEST

START_TEST(test_path_keeps_slashes)
{
    char href[64];
    (void)pb_href_path("scene 1/ndvi/a#b.json", href, sizeof href);
    ck_assert_str_eq(href, "scene%201/ndvi/a%23b.json");
    ck_assert_uint_eq(pb_href_path("", href, sizeof href), 0);
    ck_assert_str_eq(href, "");
}
END_TEST

START_TEST(test_long_name_is_cut_between_characters)
{
    char tiny[8];
    ck_assert_uint_eq(pb_href_part("\xc3\xa4\xc3\xa4", tiny, sizeof tiny), 6);
    ck_assert_str_eq(tiny, "%C3%A4");
    ck_assert_uint_eq(pb_href_part("abcdefghi", tiny, sizeof tiny), 7);
    ck_assert_str_eq(tiny, "abcdefg");
    ck_assert_uint_eq(pb_href_part("abc", tiny, 1), 0);
    ck_assert_str_eq(tiny, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("href");
    TCase *all = tcase_create("all");
    tcase_add_test(all, test_part_escapes_all_but_unreserved);
    tcase_add_test(all, test_path_keeps_slashes);
    tcase_add_test(all, test_long_name_is_cut_between_characters);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
