/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "config/base/json_writer.h"

#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_string(const char *value, const char *wanted)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_string(json, NULL, value);
    size_t bytes = 0;
    ck_assert_str_eq(pb_json_text(json, &bytes), wanted);
    ck_assert_uint_eq(bytes, strlen(wanted));
    pb_json_destroy(json);
}

static void expect_number(double value, const char *wanted)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_number(json, NULL, value);
    ck_assert_str_eq(pb_json_text(json, NULL), wanted);
    pb_json_destroy(json);
}

START_TEST(writes_nested_values_compact)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "id", "a");
    pb_json_array(json, "list");
    pb_json_int(json, NULL, INT64_MIN);
    pb_json_bool(json, NULL, true);
    pb_json_null(json, NULL);
    pb_json_object(json, NULL);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_raw(json, "raw", "[1,2]");
    pb_json_string(json, "none", NULL);
    pb_json_end(json);
    ck_assert_str_eq(pb_json_text(json, NULL),
                     "{\"id\":\"a\",\"list\":[-9223372036854775808,true,null,{}],\"raw\":[1,2],"
                     "\"none\":null}");
    pb_json_destroy(json);
}
END_TEST

START_TEST(writes_nested_values_pretty)
{
    struct pb_json *json = pb_json_create(true);
    pb_json_object(json, NULL);
    pb_json_array(json, "a");
    pb_json_int(json, NULL, 1);
    pb_json_int(json, NULL, 2);
    pb_json_end(json);
    pb_json_object(json, "empty");
    pb_json_end(json);
    pb_json_end(json);
    ck_assert_str_eq(pb_json_text(json, NULL),
                     "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"empty\": {}\n}");
    pb_json_destroy(json);
}
END_TEST

START_TEST(escapes_control_characters_and_quotes)
{
    expect_string("a\"b\\c/\n\r\t\b\f\x01\x1f\x7f",
                  "\"a\\\"b\\\\c/\\n\\r\\t\\b\\f\\u0001\\u001f\\u007f\"");
    expect_string("", "\"\"");
}
END_TEST

START_TEST(keeps_valid_utf8_and_replaces_the_rest)
{
    expect_string("K\xC3\xB6ln \xE2\x82\xAC \xF0\x9F\x9B\xB0",
                  "\"K\xC3\xB6ln \xE2\x82\xAC \xF0\x9F\x9B\xB0\"");
    const char *bad[] = {"\xFF",
                         "\xC3",
                         "\xC0\x80",
                         "\xED\xA0\x80",
                         "\xF4\x90\x80\x80",
                         "\xE0\x80\x80",
                         "\xF0\x80\x80\x80",
                         "\x80",
                         "\xE2\x82"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char wanted[64] = "\"";
        for (size_t k = 0; k < strlen(bad[i]); k++)
            strcat(wanted, "\xEF\xBF\xBD");
        strcat(wanted, "\"");
        expect_string(bad[i], wanted);
    }
    expect_string("\xE2\"x", "\"\xEF\xBF\xBD\\\"x\"");
}
END_TEST

START_TEST(numbers_are_short_and_read_back)
{
    expect_number(0.1, "0.1");
    expect_number(10980, "10980");
    expect_number(-0.0001, "-0.0001");
    expect_number(1e15, "1000000000000000");
    expect_number(1e22, "1e+22");
    expect_number(1.0 / 3, "0.3333333333333333");
    expect_number(0, "0");
    expect_number(NAN, "null");
    expect_number(-INFINITY, "null");
    unsigned long long seed = 88172645463325252ULL;
    for (int i = 0; i < 20000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        double value;
        memcpy(&value, &seed, sizeof value);
        if (!isfinite(value))
            continue;
        struct pb_json *json = pb_json_create(false);
        pb_json_number(json, NULL, value);
        double back = strtod(pb_json_text(json, NULL), NULL);
        ck_assert(memcmp(&back, &value, sizeof back) == 0);
        pb_json_destroy(json);
        float narrow;
        memcpy(&narrow, &seed, sizeof narrow);
        if (!isfinite(narrow))
            continue;
        json = pb_json_create(false);
        pb_json_float(json, NULL, narrow);
        ck_assert(strtof(pb_json_text(json, NULL), NULL) == narrow);
        pb_json_destroy(json);
    }
    struct pb_json *json = pb_json_create(false);
    pb_json_float(json, NULL, 0.1f);
    ck_assert_str_eq(pb_json_text(json, NULL), "0.1");
    pb_json_destroy(json);
}
END_TEST

START_TEST(misuse_sticks_as_an_error)
{
    for (int kind = 0; kind < 6; kind++) {
        struct pb_json *json = pb_json_create(false);
        switch (kind) {
        case 0: /* an end without a start */
            pb_json_end(json);
            break;
        case 1: /* two values at the top */
            pb_json_int(json, NULL, 1);
            pb_json_int(json, NULL, 2);
            break;
        case 2: /* no key in an object */
            pb_json_object(json, NULL);
            pb_json_int(json, NULL, 1);
            break;
        case 3: /* a key in an array */
            pb_json_array(json, NULL);
            pb_json_int(json, "x", 1);
            break;
        case 4: /* empty raw text */
            pb_json_raw(json, NULL, "");
            break;
        default: /* nesting over 64 */
            for (int i = 0; i < 65; i++)
                pb_json_array(json, NULL);
        }
        ck_assert_ptr_null(pb_json_text(json, NULL));
        pb_json_end(json);
        ck_assert_ptr_null(pb_json_text(json, NULL));
        pb_json_destroy(json);
    }
}
END_TEST

START_TEST(nesting_of_64_is_fine)
{
    struct pb_json *json = pb_json_create(true);
    for (int i = 0; i < 64; i++)
        pb_json_array(json, NULL);
    for (int i = 0; i < 64; i++)
        pb_json_end(json);
    ck_assert_ptr_nonnull(pb_json_text(json, NULL));
    pb_json_destroy(json);
}
END_TEST

START_TEST(null_writer_is_accepted_everywhere)
{
    pb_json_object(NULL, NULL);
    pb_json_string(NULL, "a", "b");
    pb_json_number(NULL, "a", 1);
    pb_json_raw(NULL, "a", "1");
    pb_json_end(NULL);
    ck_assert_ptr_null(pb_json_text(NULL, NULL));
    pb_json_destroy(NULL);
}
END_TEST

START_TEST(grows_past_its_first_buffer)
{
    struct pb_json *json = pb_json_create(false);
    char big[5001];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    pb_json_array(json, NULL);
    for (int i = 0; i < 100; i++)
        pb_json_string(json, NULL, big);
    pb_json_end(json);
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    ck_assert_uint_eq(bytes, 100 * 5003 + 1);
    ck_assert_uint_eq(strlen(text), bytes);
    pb_json_destroy(json);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_writer");
    TCase *tc = tcase_create("writer");
    tcase_add_test(tc, writes_nested_values_compact);
    tcase_add_test(tc, writes_nested_values_pretty);
    tcase_add_test(tc, escapes_control_characters_and_quotes);
    tcase_add_test(tc, keeps_valid_utf8_and_replaces_the_rest);
    tcase_add_test(tc, numbers_are_short_and_read_back);
    tcase_add_test(tc, misuse_sticks_as_an_error);
    tcase_add_test(tc, nesting_of_64_is_fine);
    tcase_add_test(tc, null_writer_is_accepted_everywhere);
    tcase_add_test(tc, grows_past_its_first_buffer);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
