/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "config/units.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <math.h>

START_TEST(sizes_with_and_without_units)
{
    static const struct {
        const char *text;
        int rc;
        uint64_t bytes;
    } rows[] = {
        {"4096", 0, 4096},
        {"0", 0, 0},
        {"512MiB", 0, 536870912},
        {"64KiB", 0, 65536},
        {"1GiB", 0, 1073741824},
        {"1.5GiB", 0, 1610612736},
        {"2TiB", 0, 2199023255552},
        {"10kB", 0, 10000},
        {"3MB", 0, 3000000},
        {"1 GB", 0, 1000000000},
        {"7B", 0, 7},
        {"512mib", 0, 536870912},
        {"64x", -EINVAL, 0},
        {"512M", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"MiB", -EINVAL, 0},
        {"-1MiB", -EINVAL, 0},
        {"-0", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"4096.5", -EINVAL, 0},
        {"1e400", -ERANGE, 0},
        {"16777216TiB", -ERANGE, 0},
        {"nan", -EINVAL, 0},
        {"12MiB ", -EINVAL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t bytes = 77;
        ck_assert_msg(pb_units_size(rows[i].text, &bytes) == rows[i].rc, "'%s'", rows[i].text);
        ck_assert_msg(bytes == (rows[i].rc ? 77 : rows[i].bytes), "'%s'", rows[i].text);
    }
}
END_TEST

START_TEST(durations_need_a_unit)
{
    static const struct {
        const char *text;
        int rc;
        int64_t ms;
    } rows[] = {
        {"2s", 0, 2000},        {"500ms", 0, 500},   {"5m", 0, 300000},   {"5min", 0, 300000},
        {"1h", 0, 3600000},     {"1d", 0, 86400000}, {"1.5s", 0, 1500},   {"1h30m", 0, 5400000},
        {"1m 30s", 0, 90000},   {"0", 0, 0},         {"2", -EINVAL, 0},   {"2x", -EINVAL, 0},
        {"s", -EINVAL, 0},      {"-2s", -EINVAL, 0}, {"2s ", -EINVAL, 0}, {"", -EINVAL, 0},
        {"1e300d", -ERANGE, 0}, {"2ss", -EINVAL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ms = 77;
        ck_assert_msg(pb_units_duration(rows[i].text, &ms) == rows[i].rc, "'%s'", rows[i].text);
        ck_assert_msg(ms == (rows[i].rc ? 77 : rows[i].ms), "'%s'", rows[i].text);
    }
}
END_TEST

START_TEST(numbers_are_strict)
{
    static const struct {
        const char *text;
        int rc;
        double value;
    } rows[] = {
        {"1", 0, 1},         {"-0.5", 0, -0.5},    {"+3", 0, 3},          {".5", 0, 0.5},
        {"5.", 0, 5},        {"1e-4", 0, 1e-4},    {"64x", -EINVAL, 0},   {"0x10", -EINVAL, 0},
        {"inf", -EINVAL, 0}, {".inf", -EINVAL, 0}, {"1e999", -ERANGE, 0}, {"", -EINVAL, 0},
        {".", -EINVAL, 0},   {"1e", -EINVAL, 0},   {"1,5", -EINVAL, 0},   {" 1", -EINVAL, 0},
        {"nan", -EINVAL, 0}, {"--1", -EINVAL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = 77;
        ck_assert_msg(pb_units_number(rows[i].text, false, &value) == rows[i].rc, "'%s'",
                      rows[i].text);
        ck_assert_msg(value == (rows[i].rc ? 77 : rows[i].value), "'%s'", rows[i].text);
    }
    const char *nans[] = {"nan", "NaN", ".nan", ".NaN", ".NAN"};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        double value = 0;
        ck_assert_int_eq(pb_units_number(nans[i], true, &value), 0);
        ck_assert(isnan(value));
    }
}
END_TEST

START_TEST(whole_numbers)
{
    int64_t value = 0;
    ck_assert_int_eq(pb_units_int("2e11", &value), 0);
    ck_assert_int_eq(value, 200000000000);
    ck_assert_int_eq(pb_units_int("-7", &value), 0);
    ck_assert_int_eq(value, -7);
    ck_assert_int_eq(pb_units_int("1.5", &value), -EINVAL);
    ck_assert_int_eq(pb_units_int("1e17", &value), -ERANGE);
    ck_assert_int_eq(value, -7);
}
END_TEST

START_TEST(texts_read_back)
{
    char text[PB_UNITS_TEXT];
    ck_assert_str_eq(pb_units_size_text(536870912, text), "512MiB");
    ck_assert_str_eq(pb_units_size_text(1000, text), "1000");
    ck_assert_str_eq(pb_units_size_text(0, text), "0");
    ck_assert_str_eq(pb_units_duration_text(2000, text), "2s");
    ck_assert_str_eq(pb_units_duration_text(1500, text), "1500ms");
    ck_assert_str_eq(pb_units_duration_text(600000, text), "10m");
    ck_assert_str_eq(pb_units_duration_text(0, text), "0s");
    ck_assert_str_eq(pb_units_number_text(0.0001, text), "0.0001");
    ck_assert_str_eq(pb_units_number_text((double)NAN, text), ".nan");
    for (uint64_t bytes = 1; bytes < (1ULL << 52); bytes = bytes * 3 + 1024) {
        uint64_t back = 0;
        ck_assert_int_eq(pb_units_size(pb_units_size_text(bytes, text), &back), 0);
        ck_assert_uint_eq(back, bytes);
        int64_t ms = 0;
        ck_assert_int_eq(pb_units_duration(pb_units_duration_text((int64_t)bytes, text), &ms), 0);
        ck_assert_int_eq(ms, (int64_t)bytes);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("units");
    TCase *tc = tcase_create("units");
    tcase_add_test(tc, sizes_with_and_without_units);
    tcase_add_test(tc, durations_need_a_unit);
    tcase_add_test(tc, numbers_are_strict);
    tcase_add_test(tc, whole_numbers);
    tcase_add_test(tc, texts_read_back);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
