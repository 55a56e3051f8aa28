/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "kernels/nearest.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char *near(const char *word)
{
    static const char *const words[] = {"index", "NDVI", "ndvi2", "convolve", "N",
                                        "R",     "math", NULL,    "NDWI"};
    const char *const found = pb_nearest(word, words, sizeof words / sizeof words[0]);

    return found ? found : "-";
}

START_TEST(typos_find_their_word)
{
    ck_assert_str_eq(near("idnex"), "index");
    ck_assert_str_eq(near("indx"), "index");
    ck_assert_str_eq(near("indexx"), "index");
    ck_assert_str_eq(near("ndvi"), "NDVI");
    ck_assert_str_eq(near("NDVI2"), "ndvi2");
    ck_assert_str_eq(near("NVDI"), "NDVI");
    ck_assert_str_eq(pb_nearest("NDIV", (const char *const[]){"NDII", "NDVI"}, 2), "NDVI");
    ck_assert_str_eq(pb_nearest("NDVII", (const char *const[]){"NDII", "NDVI"}, 2), "NDVI");
    ck_assert_str_eq(near("convlove"), "convolve");
    ck_assert_str_eq(near("konvolv"), "convolve");
    ck_assert_str_eq(near("NR"), "N");
    ck_assert_str_eq(near("n"), "N");
}
END_TEST

START_TEST(strangers_find_nothing)
{
    static char longer[65];

    ck_assert_str_eq(near("S"), "-");
    ck_assert_str_eq(near("xyz"), "-");
    ck_assert_str_eq(near(""), "-");
    ck_assert_str_eq(near("quicklook"), "-");
    memset(longer, 'N', 64);
    ck_assert_str_eq(near(longer), "-");
    ck_assert_ptr_null(pb_nearest("a", NULL, 0));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("nearest");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, typos_find_their_word);
    tcase_add_test(tests, strangers_find_nothing);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
