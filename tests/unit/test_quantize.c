/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "kernels/pixel.h"
#include "pipeline/codec/quantize.h"
#include "pipeline/codec/predictor.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double type_min[PB_TYPE_COUNT] = {0, INT16_MIN, 0, INT32_MIN, 0, 0, 0};
static const double type_max[PB_TYPE_COUNT] = {255,        INT16_MAX, UINT16_MAX, INT32_MAX,
                                               UINT32_MAX, 0,         0};

static double stored(const void *out, enum pb_type type, size_t i)
{
    switch (type) {
    case PB_U8:
        return ((const uint8_t *)out)[i];
    case PB_I16:
        return ((const int16_t *)out)[i];
    case PB_U16:
        return ((const uint16_t *)out)[i];
    case PB_I32:
        return ((const int32_t *)out)[i];
    case PB_U32:
        return ((const uint32_t *)out)[i];
    case PB_F32:
        return (double)((const float *)out)[i];
    default:
        return ((const double *)out)[i];
    }
}

static double one(enum pb_type type, double nodata, float value)
{
    struct pb_quantizer q;
    double out = 0;
    ck_assert_int_eq(pb_quantizer_init(&q, type, nodata), 0);
    pb_quantize(&q, &value, 1, &out, 1);
    return stored(&out, type, 0);
}

/* Written from the definition, with libm, one value at a time. */
static double expected(enum pb_type type, double nodata, float value)
{
    if (isnan(value))
        return nodata;
    double x = (double)value, r = nearbyint(fmin(fmax(x, type_min[type]), type_max[type]));
    if (r != nodata)
        return r;
    double step = x < nodata ? -1 : 1;
    if (nodata + step < type_min[type] || nodata + step > type_max[type])
        step = -step;
    return nodata + step;
}

static float any_float(void)
{
    uint32_t bits = (uint32_t)rand() << 16 ^ (uint32_t)rand();
    float value;
    switch (rand() % 4) {
    case 0:
        memcpy(&value, &bits, sizeof value);
        return value;
    case 1:
        return (float)(rand() % 140000 - 70000) / 2;
    case 2:
        return (float)(rand() % 1100 - 550) / 4;
    default:
        return (float)((double)rand() * 8 - 8e9);
    }
}

START_TEST(integers_follow_the_definition)
{
    enum { N = 4099 };
    float in[N];
    double out[N];
    for (int type = PB_U8; type <= PB_U32; type++)
        for (int round = 0; round < 60; round++) {
            double nodata = round == 0   ? type_min[type]
                            : round == 1 ? type_max[type]
                                         : (double)(rand() % 250);
            struct pb_quantizer q;
            ck_assert_int_eq(pb_quantizer_init(&q, (enum pb_type)type, nodata), 0);
            for (int i = 0; i < N; i++)
                in[i] = any_float();
            in[0] = NAN;
            in[1] = INFINITY;
            in[2] = -INFINITY;
            in[3] = (float)nodata;
            pb_quantize(&q, in, N, out, 1);
            for (int i = 0; i < N; i++) {
                double want = expected((enum pb_type)type, nodata, in[i]);
                ck_assert_msg(stored(out, (enum pb_type)type, (size_t)i) == want,
                              "type %d, nodata %g: %.9g gave %.17g, not %.17g", type, nodata,
                              (double)in[i], stored(out, (enum pb_type)type, (size_t)i), want);
            }
        }
}
END_TEST

START_TEST(rounds_to_nearest_even_and_saturates)
{
    ck_assert_double_eq(one(PB_I16, -1, 2.5f), 2);
    ck_assert_double_eq(one(PB_I16, -1, 3.5f), 4);
    ck_assert_double_eq(one(PB_I16, -1, -2.5f), -2);
    ck_assert_double_eq(one(PB_U8, 0, 1e30f), 255);
    ck_assert_double_eq(one(PB_U8, 9, -1e30f), 0);
    ck_assert_double_eq(one(PB_I32, 0, 2147483648.0f), 2147483647.0);
    ck_assert_double_eq(one(PB_I32, 0, -2147483648.0f), -2147483648.0);
    ck_assert_double_eq(one(PB_U32, 0, 4294967296.0f), 4294967295.0);
    ck_assert_double_eq(one(PB_U32, 0, 3000000000.0f), 3000000000.0);
    ck_assert_double_eq(one(PB_U16, 7, 65534.5f), 65534);
}
END_TEST

START_TEST(valid_values_never_become_nodata)
{
    ck_assert_double_eq(one(PB_I16, 0, 0.3f), 1);
    ck_assert_double_eq(one(PB_I16, 0, -0.3f), -1);
    ck_assert_double_eq(one(PB_I16, 0, 0.0f), 1);
    ck_assert_double_eq(one(PB_U8, 0, -5.0f), 1);
    ck_assert_double_eq(one(PB_U8, 255, 300.0f), 254);
    float beside = -9999; /* five values on: readers take the four between for nodata */
    for (int i = 0; i < 5; i++) {
        ck_assert(pb_pixel_is_nodata_f32(beside, -9999));
        ck_assert_double_eq(one(PB_F32, -9999, beside), -9998.9951171875);
        ck_assert_double_eq(one(PB_F64, -9999, beside), -9998.9951171875);
        beside = nextafterf(beside, INFINITY);
    }
    ck_assert_double_eq(one(PB_F32, -9999, beside), (double)beside);
    ck_assert_double_eq(one(PB_F32, -9999, nextafterf(-9999, -INFINITY)), -9999.0048828125);
    ck_assert(!pb_pixel_is_nodata_f32(beside, -9999));
    ck_assert_double_eq(one(PB_F32, 0, 0.0f), 0x1p-149);
    ck_assert_double_eq(one(PB_F64, 0, 0.0f), nextafter(0, INFINITY));
    ck_assert_double_eq(one(PB_F32, 0, 1.5f), 1.5);
}
END_TEST

START_TEST(floats_hold_one_kind_of_nan_and_no_infinity)
{
    struct pb_quantizer q;
    uint32_t bits[4] = {0xffc12345, 0x7fa00001, 0x7f800000, 0xff800000}, out[4];
    float in[4];
    memcpy(in, bits, sizeof in);
    ck_assert_int_eq(pb_quantizer_init(&q, PB_F32, -(double)NAN), 0);
    pb_quantize(&q, in, 4, out, 1);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(out[i], 0x7fc00000);
    ck_assert_double_eq(one(PB_F64, -1, INFINITY), -1);
    ck_assert_double_eq(one(PB_F32, -1, -INFINITY), -1);
}
END_TEST

START_TEST(steps_over_the_other_bands)
{
    const float in[3] = {1, NAN, 3};
    for (int type = 0; type < PB_TYPE_COUNT; type++) {
        struct pb_quantizer q;
        double out[16];
        memset(out, 0, sizeof out);
        ck_assert_int_eq(pb_quantizer_init(&q, (enum pb_type)type, 200), 0);
        pb_quantize(&q, in, 3, out, 5);
        static const double want[11] = {1, 0, 0, 0, 0, 200, 0, 0, 0, 0, 3};
        for (size_t i = 0; i < 11; i++)
            ck_assert_double_eq(stored(out, (enum pb_type)type, i), want[i]);
        pb_quantize_nodata(&q, 3, out);
        for (size_t i = 0; i < 3; i++)
            ck_assert_double_eq(stored(out, (enum pb_type)type, i), 200);
    }
}
END_TEST

START_TEST(refuses_nodata_that_the_type_cannot_hold)
{
    struct pb_quantizer q;
    ck_assert_int_eq(pb_quantizer_init(&q, PB_U8, 256), -EINVAL);
    ck_assert_int_eq(pb_quantizer_init(&q, PB_U8, -1), -EINVAL);
    ck_assert_int_eq(pb_quantizer_init(&q, PB_I16, 0.5), -EINVAL);
    ck_assert_int_eq(pb_quantizer_init(&q, PB_U32, NAN), -EINVAL);
    ck_assert_int_eq(pb_quantizer_init(&q, PB_F32, 1e39), -EINVAL);
    ck_assert_int_eq(pb_quantizer_init(&q, PB_F64, 1e39), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize");
    TCase *tc = tcase_create("quantize");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, integers_follow_the_definition);
    tcase_add_test(tc, rounds_to_nearest_even_and_saturates);
    tcase_add_test(tc, valid_values_never_become_nodata);
    tcase_add_test(tc, floats_hold_one_kind_of_nan_and_no_infinity);
    tcase_add_test(tc, steps_over_the_other_bands);
    tcase_add_test(tc, refuses_nodata_that_the_type_cannot_hold);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
