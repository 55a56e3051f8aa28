/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/nodata.h"

#include "run_suite.h"

#include <check.h>

static const struct {
    enum pb_type type;
    double value;
    bool fits;
} cases[] = {
    {PB_U8, 0, true},
    {PB_U8, 255, true},
    {PB_U8, 256, false},
    {PB_U8, -9999, false},
    {PB_U8, 0.5, false},
    {PB_U8, -0.0, true},
    {PB_I16, -32768, true},
    {PB_I16, -32769, false},
    {PB_I16, -9999.5, false},
    {PB_U16, 65535, true},
    {PB_U16, 65536, false},
    {PB_I32, -2147483648.0, true},
    {PB_I32, 2147483648.0, false},
    {PB_U32, 4294967295.0, true},
    {PB_U32, -1, false},
    {PB_F32, -3.4028234663852886e38, true},
    {PB_F32, -3.40282346638529e38, true}, /* rounds to the type's end */
    {PB_F32, 1e40, false},
    {PB_F64, 1e300, true},
};

START_TEST(test_nodata_fits_what_the_type_holds)
{
    const double odd[] = {NAN, INFINITY, -INFINITY};
    ck_assert_int_eq(pb_nodata_fits(cases[_i].type, cases[_i].value), cases[_i].fits);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        ck_assert_int_eq(pb_nodata_fits(cases[_i].type, odd[i]), cases[_i].type >= PB_F32);
}
END_TEST

/* The pixels that GDAL 3.6's mask band of a Float32 band with nodata -9999 takes out. */
START_TEST(test_nodata_float32_counts_four_steps_each_side)
{
    const float nodata = -9999;
    for (int side = 0; side < 2; side++) {
        float v = nodata;
        for (int k = 0; k < 9; k++) {
            ck_assert_int_eq(pb_pixel_is_nodata_f32(v, nodata), k <= 4);
            ck_assert_int_eq(isnan(pb_pixel_from_f32(v, true, nodata)), k <= 4);
            ck_assert(pb_pixel_from_f32(v, false, nodata) == v);
            v = nextafterf(v, side ? 0 : -INFINITY);
        }
    }
}
END_TEST

START_TEST(test_nodata_near_the_end_of_float32_counts)
{
    const float written[] = {-3.4e38f, -3.40282e38f, -3.4028235e38f};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        ck_assert(pb_pixel_is_nodata_f32(-FLT_MAX, written[i]));
        ck_assert(!pb_pixel_is_nodata_f32(FLT_MAX, written[i]));
        ck_assert(!pb_pixel_is_nodata_f32(-1e30f, written[i]));
        ck_assert(!pb_pixel_is_nodata_f32(0, written[i]));
    }
}
END_TEST

START_TEST(test_nodata_float64_takes_a_text_of_15_digits)
{
    const double pixel = -(double)FLT_MAX;
    ck_assert(-3.40282346638529e38 != pixel);
    ck_assert(pb_pixel_is_nodata_f64(pixel, -3.40282346638529e38));
    ck_assert(isnan(pb_pixel_from_f64(pixel, true, -3.40282346638529e38)));
    ck_assert(pb_pixel_is_nodata_f64(pixel, -3.40282347e38)); /* as written for float32 */
    ck_assert(!pb_pixel_is_nodata_f64(pixel, -3.40283e38));
    ck_assert(pb_nodata_is(PB_F64, pixel, -3.40282346638529e38));
    ck_assert(!pb_nodata_is(PB_I32, -9998, -9999) && pb_nodata_is(PB_I32, -9999, -9999));
}
END_TEST

START_TEST(test_nodata_zero_is_zero_alone)
{
    ck_assert(pb_pixel_is_nodata_f32(-0.0f, 0) && pb_pixel_is_nodata_f64(0, -0.0));
    ck_assert(!pb_pixel_is_nodata_f32(1e-38f, 0) && !pb_pixel_is_nodata_f32(-1e-45f, 0));
    ck_assert(!pb_pixel_is_nodata_f64(1e-300, 0));
    ck_assert(!pb_pixel_is_nodata_f32(NAN, 0) && !pb_pixel_is_nodata_f32(INFINITY, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nodata");
    TCase *tc = tcase_create("nodata");
    tcase_add_loop_test(tc, test_nodata_fits_what_the_type_holds, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tc, test_nodata_float32_counts_four_steps_each_side);
    tcase_add_test(tc, test_nodata_near_the_end_of_float32_counts);
    tcase_add_test(tc, test_nodata_float64_takes_a_text_of_15_digits);
    tcase_add_test(tc, test_nodata_zero_is_zero_alone);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
