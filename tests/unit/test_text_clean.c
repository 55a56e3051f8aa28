/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "config/base/text_clean.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void becomes(const char *text, const char *want)
{
    char out[128];
    memset(out, 'x', sizeof out);
    ck_assert_uint_eq(pb_text_clean(text, out, sizeof out), strlen(want));
    ck_assert_str_eq(out, want);
}

START_TEST(keeps_plain_and_foreign_letters)
{
    becomes("NIR 842 nm", "NIR 842 nm");
    becomes("\xc3\xa4\xe2\x82\xac\xf0\x9f\x9b\xb0", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x9b\xb0");
    becomes("", "");
    becomes(NULL, "");
}
END_TEST

START_TEST(turns_control_characters_into_spaces)
{
    becomes("a\tb\nc\x1b[31md\x7f", "a b c [31md");
    becomes("a\xc2\x85z", "a z");     /* C1 */
    becomes("a\xe2\x80\xa8z", "a z"); /* U+2028 */
    becomes("\n\n a \r\n", "a");
}
END_TEST

START_TEST(marks_bytes_that_are_no_utf8)
{
    becomes("a\xff\x80z", "a??z");
    becomes("\xc0\xaf", "??");           /* overlong */
    becomes("\xe0\x80\xaf", "???");      /* overlong */
    becomes("\xed\xa0\x80", "???");      /* surrogate */
    becomes("\xf4\x90\x80\x80", "????"); /* past U+10FFFF */
    becomes("\xf5\x80\x80\x80", "????");
    becomes("a\xe2\x82", "a??"); /* cut off at the end */
    becomes("a\xf0\x9f\x9b", "a???");
}
END_TEST

START_TEST(cuts_between_characters)
{
    char out[5];
    ck_assert_uint_eq(pb_text_clean("abc\xe2\x82\xac", out, sizeof out), 3);
    ck_assert_str_eq(out, "abc");
    ck_assert_uint_eq(pb_text_clean("abcdefgh", out, sizeof out), 4);
    ck_assert_str_eq(out, "abcd");
    ck_assert_uint_eq(pb_text_clean("abc", out, 1), 0);
    ck_assert_str_eq(out, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text_clean");
    TCase *all = tcase_create("all");
    tcase_add_test(all, keeps_plain_and_foreign_letters);
    tcase_add_test(all, turns_control_characters_into_spaces);
    tcase_add_test(all, marks_bytes_that_are_no_utf8);
    tcase_add_test(all, cuts_between_characters);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
