/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "tests/unit/chain_fixture.h"

#include <errno.h>

static const float a = 2.0f, b = 3.0f, invalid = NAN;

static const struct pb_item none[1] = {{0}};

/* Runs scale over bands a, b, c (c invalid) and gives outputs a, b, c and `extra`. */
static int scaled(const struct pb_item *factor, size_t n_factor, const struct pb_item *offset,
                  size_t n_offset, const struct pb_item *bands, size_t n_bands, const char *extra,
                  float out[4], struct pb_diag *diag)
{
    const char *const outputs[] = {"a", "b", "c", extra};
    const float *const planes[] = {&a, &b, &invalid};
    struct fx_step step;
    struct pb_chain *chain = NULL;
    size_t at;

    fx_op(&step, "scale");
    fx_arg(&step, "factor", factor, n_factor);
    fx_arg(&step, "offset", offset, n_offset);
    fx_arg(&step, "bands", bands, n_bands);
    const int rc = fx_create("abc", &step, 1, outputs, extra ? 4 : 3, diag, &at, &chain);
    if (rc == 0)
        fx_run_row(chain, planes, 1, out);
    pb_chain_destroy(chain);
    return rc;
}

START_TEST(one_number_goes_for_all_bands)
{
    const struct pb_item factor = {.text = "10", .num = 10.0};
    const struct pb_item offset = {.text = "0.5", .num = 0.5};
    struct pb_diag diag;
    float out[4];

    ck_assert_int_eq(scaled(&factor, 1, &offset, 1, none, 0, NULL, out, &diag), 0);
    ck_assert(out[0] == 20.5f && out[1] == 30.5f && isnan(out[2]));
}
END_TEST

START_TEST(a_map_goes_band_by_band)
{
    const struct pb_item factor[] = {{.key = "b", .num = 4.0}};
    const struct pb_item offset[] = {{.key = "a", .num = -1.0}, {.key = "b", .num = 1.0}};
    struct pb_diag diag;
    float out[4];

    ck_assert_int_eq(scaled(factor, 1, offset, 2, none, 0, NULL, out, &diag), 0);
    ck_assert(out[0] == 1.0f && out[1] == 13.0f && isnan(out[2]));
}
END_TEST

START_TEST(only_listed_bands_change_and_a_map_makes_new_ones)
{
    const struct pb_item factor = {.text = "10", .num = 10.0};
    const struct pb_item list = {.text = "b"}, map = {.key = "a10", .text = "a"};
    struct pb_diag diag;
    float out[4];

    ck_assert_int_eq(scaled(&factor, 1, none, 0, &list, 1, NULL, out, &diag), 0);
    ck_assert(out[0] == 2.0f && out[1] == 30.0f);
    ck_assert_int_eq(scaled(&factor, 1, none, 0, &map, 1, "a10", out, &diag), 0);
    ck_assert(out[0] == 2.0f && out[1] == 3.0f && out[3] == 20.0f);
}
END_TEST

START_TEST(the_order_is_multiply_round_add_round)
{
    const struct pb_item factor = {.num = 0.1}, offset = {.num = 0.7};
    struct pb_diag diag;
    float out[4];
    volatile float product = 3.0f * 0.1f;

    ck_assert_int_eq(scaled(&factor, 1, &offset, 1, none, 0, NULL, out, &diag), 0);
    ck_assert(out[1] == product + 0.7f);
}
END_TEST

START_TEST(unknown_bands_are_named)
{
    const struct pb_item factor[] = {{.key = "q", .num = 4.0}};
    const struct pb_item bands[] = {{.text = "B"}};
    struct pb_diag diag;
    float out[4];

    ck_assert_int_eq(scaled(factor, 1, none, 0, none, 0, NULL, out, &diag), -EINVAL);
    ck_assert_int_eq(diag.kind, PB_DIAG_BAND);
    ck_assert_ptr_eq(diag.item, factor);
    ck_assert_ptr_nonnull(strstr(diag.msg, "'factor' names 'q'"));
    ck_assert_int_eq(scaled(none, 0, none, 0, bands, 1, NULL, out, &diag), -EINVAL);
    ck_assert_ptr_eq(diag.item, bands);
    ck_assert_ptr_nonnull(strstr(diag.msg, "no band 'B' here; "));
    ck_assert_ptr_nonnull(strstr(diag.msg, "'b'"));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("op_scale");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, one_number_goes_for_all_bands);
    tcase_add_test(tests, a_map_goes_band_by_band);
    tcase_add_test(tests, only_listed_bands_change_and_a_map_makes_new_ones);
    tcase_add_test(tests, the_order_is_multiply_round_add_round);
    tcase_add_test(tests, unknown_bands_are_named);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
