/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "tests/unit/chain_fixture.h"

#include <errno.h>

static int made(const struct pb_item *bands, size_t n_bands, const struct pb_item *constants,
                size_t n_constants, float *out_x, struct pb_diag *diag)
{
    const char *const output = "X";
    const float a = 2.0f, b = 3.0f;
    const float *const planes[] = {&a, &b};
    struct fx_step step;
    struct pb_chain *chain = NULL;
    size_t at;

    fx_op(&step, "math");
    fx_arg(&step, "bands", bands, n_bands);
    fx_arg(&step, "constants", constants, n_constants);
    const int rc = fx_create("ab", &step, 1, &output, 1, diag, &at, &chain);
    if (rc == 0)
        fx_run_row(chain, planes, 1, out_x);
    pb_chain_destroy(chain);
    return rc;
}

START_TEST(later_entries_use_earlier_ones_and_constants)
{
    const struct pb_item bands[] = {{.key = "t", .text = "a * k"}, {.key = "X", .text = "t + m"}};
    const struct pb_item constants[] = {{.key = "k", .num = 10.0}, {.key = "m", .num = 0.5}};
    struct pb_diag diag;
    float x;

    ck_assert_int_eq(made(bands, 2, constants, 2, &x, &diag), 0);
    ck_assert(x == 20.5f);
}
END_TEST

START_TEST(a_band_wins_over_a_constant_of_its_name)
{
    const struct pb_item bands[] = {{.key = "X", .text = "a"}};
    const struct pb_item constants[] = {{.key = "a", .num = 10.0}};
    struct pb_diag diag;
    float x;

    ck_assert_int_eq(made(bands, 1, constants, 1, &x, &diag), 0);
    ck_assert(x == 2.0f);
}
END_TEST

START_TEST(a_band_may_have_the_name_of_a_function)
{
    const struct pb_item bands[] = {{.key = "min", .text = "a + 1"},
                                    {.key = "X", .text = "min + min(min, 1)"}};
    struct pb_diag diag;
    float x;

    ck_assert_int_eq(made(bands, 2, NULL, 0, &x, &diag), 0);
    ck_assert(x == 4.0f);
}
END_TEST

START_TEST(an_entry_may_replace_its_own_band)
{
    const struct pb_item bands[] = {{.key = "a", .text = "a * a"}, {.key = "X", .text = "a + b"}};
    struct pb_diag diag;
    float x;

    ck_assert_int_eq(made(bands, 2, NULL, 0, &x, &diag), 0);
    ck_assert(x == 7.0f);
}
END_TEST

START_TEST(mistakes_point_at_the_entry)
{
    const struct pb_item typo[] = {{.key = "X", .text = "a + limt"}};
    const struct pb_item constants[] = {{.key = "limit", .num = 10.0}};
    struct pb_diag diag;
    float x;

    ck_assert_int_eq(made(typo, 1, constants, 1, &x, &diag), -EINVAL);
    ck_assert_ptr_eq(diag.item, typo);
    ck_assert_int_eq(diag.col, 5);
    ck_assert_ptr_nonnull(strstr(diag.msg, "did you mean 'limit'?"));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("op_math");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, later_entries_use_earlier_ones_and_constants);
    tcase_add_test(tests, a_band_wins_over_a_constant_of_its_name);
    tcase_add_test(tests, a_band_may_have_the_name_of_a_function);
    tcase_add_test(tests, an_entry_may_replace_its_own_band);
    tcase_add_test(tests, mistakes_point_at_the_entry);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
