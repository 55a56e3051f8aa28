/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/number.h"
#include "run_suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 1;

static uint64_t next_random(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed ^ seed >> 29;
}

/* The form of the value with the least count of digits that read back, which is found by trying
 * each. */
static void expected(double value, bool as_float, char out[64])
{
    int digits = 1, exponent;
    for (;; digits++) {
        (void)snprintf(out, 64, "%.*e", digits - 1, value);
        if (as_float ? strtof(out, NULL) == (float)value : strtod(out, NULL) == value)
            break;
    }
    exponent = atoi(strchr(out, 'e') + 1);
    if (exponent >= -5 && exponent <= 15)
        (void)snprintf(out, 64, "%.*f", digits - 1 > exponent ? digits - 1 - exponent : 0, value);
}

static void check(double value)
{
    char text[PB_NUMBER_TEXT], form[64];
    expected(value, false, form);
    ck_assert_uint_eq(pb_number_text(value, text), strlen(text));
    ck_assert_str_eq(text, form);
}

static void check_float(float value)
{
    char text[PB_NUMBER_TEXT], form[64];
    expected((double)value, true, form);
    ck_assert_uint_eq(pb_number_text_float(value, text), strlen(text));
    ck_assert_str_eq(text, form);
}

START_TEST(test_random_bits_have_the_fewest_digits)
{
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = next_random();
        const uint32_t low = (uint32_t)bits;
        double value;
        float narrow;
        memcpy(&value, &bits, sizeof value);
        memcpy(&narrow, &low, sizeof narrow);
        if (isfinite(value))
            check(value);
        if (isfinite(narrow))
            check_float(narrow);
    }
}
END_TEST

START_TEST(test_short_decimals_have_the_fewest_digits)
{
    for (int i = 0; i < 20000; i++) {
        char text[64];
        const int digits = 1 + (int)(next_random() % 17);
        uint64_t most = 1;
        for (int k = 0; k < digits; k++)
            most *= 10;
        (void)snprintf(text, sizeof text, "%llue%d", (unsigned long long)(next_random() % most),
                       (int)(next_random() % 60) - 30);
        check(strtod(text, NULL));
        if (isfinite(strtof(text, NULL)))
            check_float(strtof(text, NULL));
    }
}
END_TEST

START_TEST(test_edges_have_the_fewest_digits)
{
    const double edge[] = {0,    -0.0,    1,       0.1,     1e15,    1e16,      1e23, 5e-324,
                           1e-4, 9.99e-5, 0x1p-60, 0x1p-44, 0x1p100, 0x1p-1022, 0.3,  100};
    for (size_t i = 0; i < sizeof edge / sizeof edge[0]; i++)
        for (int step = -1; step <= 1; step++) {
            const double value =
                step == 0 ? edge[i] : nextafter(edge[i], step < 0 ? -1e300 : 1e300);
            check(value);
            check_float((float)value);
        }
}
END_TEST

START_TEST(test_form_follows_the_exponent)
{
    char text[PB_NUMBER_TEXT];
    (void)pb_number_text(123.5, text);
    ck_assert_str_eq(text, "123.5");
    (void)pb_number_text(100, text);
    ck_assert_str_eq(text, "100");
    (void)pb_number_text(1e22, text);
    ck_assert_str_eq(text, "1e+22");
    (void)pb_number_text_float(0.1F, text);
    ck_assert_str_eq(text, "0.1");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("number");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_random_bits_have_the_fewest_digits);
    tcase_add_test(tests, test_short_decimals_have_the_fewest_digits);
    tcase_add_test(tests, test_edges_have_the_fewest_digits);
    tcase_add_test(tests, test_form_follows_the_exponent);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
