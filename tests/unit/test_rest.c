/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "pipeline/codec/rest.h"

#include "run_suite.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_bits(void)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static double random_double(void)
{
    uint64_t bits = random_bits();
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static double joined(double v)
{
    float rest[PB_REST_MAX];
    pb_rest_split(v, rest);
    return pb_rest_join((float)v, rest[0], rest[1]);
}

START_TEST(doubles_normal_in_float32_are_joined_exactly)
{
    size_t n = 0;
    ck_assert_double_eq(joined(0), 0);
    for (int i = 0; i < 4000000; i++) {
        double v = random_double();
        if (!isfinite((float)v) || fabs(v) < (double)FLT_MIN)
            continue;
        n++;
        ck_assert_msg(joined(v) == v, "%a becomes %a", v, joined(v));
    }
    ck_assert_uint_gt(n, 100000);
    ck_assert(joined(-DBL_MAX) != -DBL_MAX);
    ck_assert(joined(0x1.23456789abcdep-149) != 0x1.23456789abcdep-149);
}
END_TEST

START_TEST(needs_one_rest_for_integers)
{
    ck_assert_uint_eq(pb_rest_planes(PB_U32), 1);
    ck_assert_uint_eq(pb_rest_planes(PB_I32), 1);
    ck_assert_uint_eq(pb_rest_planes(PB_F64), 2);
    ck_assert_uint_eq(pb_rest_planes(PB_U16), 0);
    ck_assert_uint_eq(pb_rest_planes(PB_F32), 0);
    for (int i = 0; i < 1000000; i++) {
        uint32_t u = (uint32_t)random_bits();
        double v = i % 2 ? (double)u : (double)(int32_t)u;
        float rest[PB_REST_MAX];
        pb_rest_split(v, rest);
        ck_assert(rest[1] == 0 && pb_rest_join((float)v, rest[0], 0) == v);
    }
}
END_TEST

enum { N = 8 };

/* Quantizes values into every second sample. */
static size_t quantized(const struct pb_quantizer *q, const double *v, void *out)
{
    float value[N], b[N], c[N];
    const float *const rest[PB_REST_MAX] = {b, c};
    for (int i = 0; i < N; i++) {
        float split[PB_REST_MAX];
        pb_rest_split(v[i], split);
        value[i] = (float)v[i];
        b[i] = split[0];
        c[i] = split[1];
    }
    return pb_rest_quantize(q, value, rest, pb_rest_planes(q->type), N, out, 2);
}

START_TEST(stores_all_digits_and_moves_what_is_nodata)
{
    struct pb_quantizer q;
    const double v[N] = {4294967295.0, 4294967294.0, NAN, 16777217, 0, 1, 2147483649.0, 3};
    static const uint32_t as_u32[N] = {4294967294u, 4294967294u, 4294967295u, 16777217,
                                       0,           1,           2147483649u, 3};
    static const int32_t as_i32[N] = {INT32_MAX, INT32_MAX, 0, 16777217, 1, 1, INT32_MAX, 3};
    uint32_t u[2 * N] = {0};
    int32_t s[2 * N] = {0};
    double d[2 * N] = {0};
    ck_assert_int_eq(pb_quantizer_init(&q, PB_U32, 4294967295.0), 0);
    ck_assert_uint_eq(quantized(&q, v, u), 1);
    ck_assert_int_eq(pb_quantizer_init(&q, PB_I32, 0), 0);
    ck_assert_uint_eq(quantized(&q, v, s), 1);
    ck_assert_int_eq(pb_quantizer_init(&q, PB_F64, NAN), 0);
    ck_assert_uint_eq(quantized(&q, v, d), 0);
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(u[2 * i], as_u32[i]);
        ck_assert_int_eq(s[2 * i], as_i32[i]);
        ck_assert(d[2 * i] == v[i] || (isnan(d[2 * i]) && isnan(v[i])));
        ck_assert(u[2 * i + 1] == 0 && s[2 * i + 1] == 0 && d[2 * i + 1] == 0);
    }
}
END_TEST

START_TEST(moves_nothing_beside_a_mask)
{
    struct pb_quantizer q;
    const double v[N] = {0, 4294967295.0, NAN, 0, 5, 0, 0, 1};
    uint32_t u[2 * N] = {0};
    ck_assert_int_eq(pb_quantizer_init_masked(&q, PB_U32, 0), 0);
    ck_assert_uint_eq(quantized(&q, v, u), 0);
    ck_assert_uint_eq(u[0], 0);
    ck_assert_uint_eq(u[2], 4294967295u);
    ck_assert_uint_eq(u[4], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rest");
    TCase *tc = tcase_create("rest");
    tcase_add_test(tc, doubles_normal_in_float32_are_joined_exactly);
    tcase_add_test(tc, needs_one_rest_for_integers);
    tcase_add_test(tc, stores_all_digits_and_moves_what_is_nodata);
    tcase_add_test(tc, moves_nothing_beside_a_mask);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
