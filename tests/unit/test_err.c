/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Errors as they are shown: nothing in a file name or a library's message controls a terminal.
 */
#include "config/base/err.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

START_TEST(control_characters_are_not_shown)
{
    struct pb_err err = {0};
    char text[1200];
    ck_assert_int_lt(pb_fail_at(&err, PB_E_INPUT_DAMAGED,
                                "a\x1b[2J\xc2\x9b"
                                "b\n.tif",
                                0, 0, "says %s",
                                "x\x1b]0;t\x07\r\x7f \xe2\x80\xae"
                                "gpj.exe \xe2\x81\xa6 \xc3\xa4"),
                     0);
    ck_assert_str_eq(err.file, "a?[2J??b?.tif");
    ck_assert_str_eq(err.msg, "says x?]0;t??? ???gpj.exe ??? \xc3\xa4");
    pb_err_text(&err, text, sizeof text);
    for (const char *s = text; *s != '\0'; s++)
        ck_assert((unsigned char)*s >= 0x20 && *s != 0x7f);
}
END_TEST

START_TEST(the_first_error_wins)
{
    struct pb_err err = {0};
    ck_assert_int_eq(pb_fail(&err, PB_E_MEMORY, "first"), pb_code_errno(PB_E_MEMORY));
    ck_assert_int_eq(pb_fail(&err, PB_E_INPUT_DAMAGED, "second"), pb_code_errno(PB_E_MEMORY));
    ck_assert_str_eq(err.msg, "first");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("err");
    TCase *tc = tcase_create("err");
    tcase_add_test(tc, control_characters_are_not_shown);
    tcase_add_test(tc, the_first_error_wins);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
