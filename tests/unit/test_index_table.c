/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * The index catalogue: that it is whole and consistent in itself, and how many indices known
 * sensors can evaluate. Its values are checked by integration/test_index_values.py. */
#include "kernels/index/index_table.h"

#include "run_suite.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))

START_TEST(has_280_rows_in_order_with_all_fields)
{
    static const char domains[] = " vegetation water burn urban soil radar snow clouds kernel ";
    ck_assert_uint_eq(pb_index_count(), 280);
    ck_assert_ptr_null(pb_index_at(280));
    for (size_t i = 0; i < pb_index_count(); i++) {
        const struct pb_index *row = pb_index_at(i);
        char domain[32];
        snprintf(domain, sizeof domain, " %s ", row->domain);
        ck_assert_msg(strstr(domains, domain) != NULL, "%s: %s", row->name, row->domain);
        ck_assert(strlen(row->name) > 0 && strlen(row->name) <= 32 && strlen(row->long_name) > 3);
        ck_assert(strlen(row->bands) > 0 && strncmp(row->reference, "http", 4) == 0);
        ck_assert_ptr_eq(pb_index_find(row->name), row);
        ck_assert(i == 0 || strcmp(pb_index_at(i - 1)->name, row->name) < 0);
    }
    ck_assert_ptr_null(pb_index_find("ndvi"));
    ck_assert_ptr_null(pb_index_find(""));
}
END_TEST

static bool lists(const struct pb_index *row, const char *text, size_t length)
{
    const char *list = row->bands, *name;
    size_t name_length;
    while (pb_index_next_name(&list, &name, &name_length)) {
        if (name_length == length && memcmp(name, text, length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Names in the formula, each of which the row must list; returns how many are new in it. */
static size_t check_formula_names(const struct pb_index *row)
{
    char seen[512] = " ", padded[64];
    size_t count = 0;
    for (const char *p = row->formula; *p != '\0';) {
        size_t length = 0;
        while (is_name_char(p[length]) || (isdigit((unsigned char)*p) && p[length] == '.')) {
            length++;
        }
        if (length > 0 && !isdigit((unsigned char)*p)) {
            ck_assert_msg(lists(row, p, length), "%s does not list %.*s", row->name, (int)length,
                          p);
            snprintf(padded, sizeof padded, " %.*s ", (int)length, p);
            if (strstr(seen, padded) == NULL) {
                strcat(seen, padded + 1);
                count++;
            }
        }
        p += length > 0 ? length : 1;
    }
    return count;
}

START_TEST(every_row_lists_exactly_the_names_of_its_formula)
{
    for (size_t i = 0; i < pb_index_count(); i++) {
        const struct pb_index *row = pb_index_at(i);
        const char *list = row->bands, *name;
        size_t length, listed = 0;
        while (pb_index_next_name(&list, &name, &length)) {
            listed++;
        }
        ck_assert_msg(check_formula_names(row) == listed, "%s: %s", row->name, row->bands);
    }
}
END_TEST

START_TEST(constants_have_their_defaults)
{
    ck_assert_uint_eq(pb_index_constant_count(), 28);
    ck_assert_ptr_null(pb_index_constant_at(28));
    size_t without = 0;
    for (size_t i = 0; i < pb_index_constant_count(); i++) {
        const struct pb_index_constant *c = pb_index_constant_at(i);
        ck_assert_ptr_eq(pb_index_constant_find(c->name), c);
        ck_assert(strlen(c->doc) > 3);
        without += !c->has_default;
    }
    ck_assert_uint_eq(without, 7); /* PAR and six wavelengths */
    ck_assert(pb_index_constant_find("C2")->value == 7.5);
    ck_assert(pb_index_constant_find("cexp")->value == 1.16);
    ck_assert(!pb_index_constant_find("lambdaN")->has_default);
    ck_assert_ptr_null(pb_index_constant_find("N"));
}
END_TEST

/* Checks how many a band set can evaluate: of the plain indices, and of the five kernel ones. */
static void check_evaluable(const char *const *bands, size_t n_bands, const char *const *given,
                            size_t n_given, size_t plain, size_t kernel)
{
    size_t count[2] = {0, 0};
    char missing[128];
    for (size_t i = 0; i < pb_index_count(); i++) {
        const struct pb_index *row = pb_index_at(i);
        bool can = pb_index_can(row, bands, n_bands, given, n_given, missing, sizeof missing);
        ck_assert_msg(can == (missing[0] == '\0'), "%s: %s", row->name, missing);
        count[strcmp(row->domain, "kernel") == 0] += can;
    }
    ck_assert_uint_eq(count[0], plain);
    ck_assert_uint_eq(count[1], kernel);
}

START_TEST(counts_what_known_sensors_can_evaluate)
{
    static const char *const sentinel2[] = {"A",   "B", "G",  "R",  "RE1", "RE2",
                                            "RE3", "N", "N2", "WV", "S1",  "S2"};
    static const char *const waves[] = {"lambdaG",  "lambdaR",  "lambdaN",
                                        "lambdaN2", "lambdaS1", "lambdaS2"};
    static const char *const landsat8[] = {"A", "B", "G", "R", "N2", "S1", "S2", "T1", "T2"};
    static const char *const landsat8_named[] = {"A",  "B",  "G",  "R",  "N", "N2",
                                                 "S1", "S2", "T1", "T2", "T"};
    static const char *const planet[] = {"A", "B", "G", "G1", "Y", "R", "RE1", "N2"};
    static const char *const planet_named[] = {"A", "B", "G", "G1", "Y", "R", "RE1", "N2", "N"};
    static const char *const worldview3[] = {"A", "B", "G", "Y", "R", "N"};
    check_evaluable(sentinel2, N(sentinel2), NULL, 0, 233, 5);
    check_evaluable(sentinel2, N(sentinel2), waves, N(waves), 239, 5);
    check_evaluable(landsat8, N(landsat8), NULL, 0, 59, 1);
    check_evaluable(landsat8_named, N(landsat8_named), NULL, 0, 204, 5);
    check_evaluable(planet, N(planet), NULL, 0, 44, 1);
    check_evaluable(planet_named, N(planet_named), NULL, 0, 121, 5);
    check_evaluable(worldview3, N(worldview3), NULL, 0, 101, 5);
    check_evaluable(NULL, 0, NULL, 0, 0, 0);
}
END_TEST

START_TEST(names_what_is_missing_once_each)
{
    static const char *const bands[] = {"N", "R"}, *const waves[] = {"lambdaN"};
    char missing[64], tiny[4];
    ck_assert(!pb_index_can(pb_index_find("EVI"), bands, 2, NULL, 0, missing, sizeof missing));
    ck_assert_str_eq(missing, "B");
    ck_assert(!pb_index_can(pb_index_find("FAI"), bands, 2, waves, 1, missing, sizeof missing));
    ck_assert_str_eq(missing, "S1 lambdaR lambdaS1");
    ck_assert(!pb_index_can(pb_index_find("FAI"), bands, 2, waves, 1, tiny, sizeof tiny));
    ck_assert_str_eq(tiny, "S1");
    ck_assert(!pb_index_can(pb_index_find("kVARI"), bands, 2, NULL, 0, missing, sizeof missing));
    ck_assert_str_eq(missing, "G B");
    ck_assert(pb_index_can(pb_index_find("kNDVI"), bands, 2, NULL, 0, missing, sizeof missing));
    /* The L of kNL is the constant, which has a default. */
    ck_assert(!pb_index_can(pb_index_find("kEVI"), bands, 2, NULL, 0, missing, sizeof missing));
    ck_assert_str_eq(missing, "B");
    ck_assert(!pb_index_can(pb_index_find("EVI"), bands, 2, NULL, 0, NULL, 0));
}
END_TEST

START_TEST(splits_kernel_terms_at_the_band_names)
{
    ck_assert_uint_eq(pb_index_kernel_split("kNR", 3), 2);
    ck_assert_uint_eq(pb_index_kernel_split("kNL", 3), 2);
    ck_assert_uint_eq(pb_index_kernel_split("kN2R", 4), 3);
    ck_assert_uint_eq(pb_index_kernel_split("kRRE1", 5), 2);
    ck_assert_uint_eq(pb_index_kernel_split("kRE1G1", 6), 4);
    ck_assert_uint_eq(pb_index_kernel_split("k", 1), 0);
    ck_assert_uint_eq(pb_index_kernel_split("kN", 2), 0);
    ck_assert_uint_eq(pb_index_kernel_split("kNQ", 3), 0);
    ck_assert_uint_eq(pb_index_kernel_split("NIR", 3), 0);
}
END_TEST

START_TEST(finds_the_nearest_name_of_a_typo)
{
    ck_assert_str_eq(pb_index_nearest("ndvi"), "NDVI");
    ck_assert_str_eq(pb_index_nearest("NDVJ"), "NDVI");
    ck_assert_str_eq(pb_index_nearest("KNDVI"), "kNDVI");
    ck_assert_str_eq(pb_index_nearest("TCARIOSAVI75"), "TCARIOSAVI705");
    ck_assert_ptr_null(pb_index_nearest("completely_else"));
    ck_assert_ptr_null(pb_index_nearest(""));
    ck_assert_ptr_null(pb_index_nearest("a_name_that_is_longer_than_any_name_of_an_index_may_be"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("index_table");
    TCase *tcase = tcase_create("index_table");
    tcase_add_test(tcase, has_280_rows_in_order_with_all_fields);
    tcase_add_test(tcase, every_row_lists_exactly_the_names_of_its_formula);
    tcase_add_test(tcase, constants_have_their_defaults);
    tcase_add_test(tcase, counts_what_known_sensors_can_evaluate);
    tcase_add_test(tcase, names_what_is_missing_once_each);
    tcase_add_test(tcase, splits_kernel_terms_at_the_band_names);
    tcase_add_test(tcase, finds_the_nearest_name_of_a_typo);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
