/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "config/base/json_reader.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse(const char *text, struct pb_json_value **out)
{
    return pb_json_parse(text, strlen(text), 1000, out);
}

START_TEST(what_is_not_json_is_refused)
{
    static const char *const bad[] = {
        "",         "{",   "nonsense", "['a']",    "{\"a\":1}x", "{} {}",     "[1,]",
        "\"\xff\"", "nul", "null",     "{\"a\":}", "[1 2]",      "NaN",       "// hi\n1",
        "1.",       "-01", "[1e]",     "Infinity", "\"\\x\"",    "\"\\u12\"", "\"\xed\xa0\x80\"",
        "1e400"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pb_json_value *value = NULL;
        ck_assert_msg(parse(bad[i], &value) == -EINVAL, "'%s' was taken", bad[i]);
        ck_assert_ptr_null(value);
    }
    struct pb_json_value *value = NULL;
    ck_assert_int_eq(pb_json_parse("{}\0{}", 5, 1000, &value), -EINVAL);
}
END_TEST

START_TEST(limits_hold)
{
    struct pb_json_value *value = NULL;
    char deep[200];
    ck_assert_int_eq(pb_json_parse("[1,2,3]", 7, 6, &value), -EFBIG);
    memset(deep, '[', 100);
    memset(deep + 100, ']', 99);
    deep[199] = '\0';
    ck_assert_int_eq(parse(deep, &value), -EFBIG);
    ck_assert_ptr_null(value);
}
END_TEST

START_TEST(getters_take_their_type_and_no_other)
{
    struct pb_json_value *value = NULL;
    ck_assert_int_eq(parse(" {\"s\":\"x\",\"i\":-5,\"f\":1.5,\"b\":true,\"n\":null,\"a\":[1,\"y\"],"
                           "\"z\":\"a\\u0000b\",\"t\":\"7\"} \n",
                           &value),
                     0);
    int64_t number = 99;
    bool truth = false, found = false;
    ck_assert_str_eq(pb_json_get_text(value, "s"), "x");
    ck_assert_ptr_null(pb_json_get_text(value, "i"));
    ck_assert_ptr_null(pb_json_get_text(value, "z"));
    ck_assert_ptr_null(pb_json_get_text(value, "none"));
    ck_assert_int_eq(pb_json_get_int(value, "f", &number), -EINVAL);
    ck_assert_int_eq(pb_json_get_int(value, "t", &number), -EINVAL);
    ck_assert_int_eq(pb_json_get_int(value, "none", &number), -ENOENT);
    ck_assert_int_eq(number, 99);
    ck_assert_int_eq(pb_json_get_int(value, "i", &number), 0);
    ck_assert_int_eq(number, -5);
    ck_assert_int_eq(pb_json_get_bool(value, "i", &truth), -EINVAL);
    ck_assert_int_eq(pb_json_get_bool(value, "b", &truth), 0);
    ck_assert(truth);
    ck_assert(pb_json_is_null(pb_json_get(value, "n", &found)));
    ck_assert(found);
    const struct pb_json_value *list = pb_json_get(value, "a", &found);
    ck_assert_uint_eq(pb_json_count(list), 2);
    ck_assert_str_eq(pb_json_text_of(pb_json_at(list, 1)), "y");
    ck_assert_ptr_null(pb_json_at(list, 2));
    ck_assert_str_eq(pb_json_source(list), "[1,\"y\"]");
    ck_assert_str_eq(pb_json_key(value, 1), "i");
    ck_assert_ptr_null(pb_json_key(value, 8));
    pb_json_release(value);
}
END_TEST

START_TEST(nothing_is_found_in_nothing)
{
    int64_t number;
    ck_assert_ptr_null(pb_json_get_text(NULL, "a"));
    ck_assert_int_eq(pb_json_get_int(NULL, "a", &number), -ENOENT);
    ck_assert_uint_eq(pb_json_count(NULL), 0);
    ck_assert_ptr_null(pb_json_key(NULL, 0));
    pb_json_release(NULL);
}
END_TEST

START_TEST(a_bare_number_needs_nothing_after_it)
{
    struct pb_json_value *value = NULL;
    ck_assert_int_eq(parse("42", &value), 0);
    ck_assert(pb_json_is_id(value));
    pb_json_release(value);
}
END_TEST

START_TEST(numbers_and_escapes_keep_their_value)
{
    static const char *const same[] = {
        "[0,-0.5,1e5,9223372036854775807,18446744073709551615,18446744073709551616]",
        "{\"a\":{\"b\":[[],{}]},\"a/b\":\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\"}"};
    struct pb_json_value *value = NULL;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        ck_assert_int_eq(parse(same[i], &value), 0);
        ck_assert_str_eq(pb_json_source(value), same[i]);
        pb_json_release(value);
    }
    ck_assert_int_eq(parse("[\"\\u00e9\\ud83d\\ude00\\ud800\\/\",2.5,7,true]", &value), 0);
    ck_assert_str_eq(pb_json_text_of(pb_json_at(value, 0)),
                     "\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd/");
    ck_assert_double_eq(pb_json_number_of(pb_json_at(value, 1), 1), 2.5);
    ck_assert_double_eq(pb_json_number_of(pb_json_at(value, 2), 1), 7);
    ck_assert_double_eq(pb_json_number_of(pb_json_at(value, 3), 1), 1);
    pb_json_release(value);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *tests = tcase_create("json");
    tcase_add_test(tests, what_is_not_json_is_refused);
    tcase_add_test(tests, limits_hold);
    tcase_add_test(tests, getters_take_their_type_and_no_other);
    tcase_add_test(tests, nothing_is_found_in_nothing);
    tcase_add_test(tests, a_bare_number_needs_nothing_after_it);
    tcase_add_test(tests, numbers_and_escapes_keep_their_value);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
