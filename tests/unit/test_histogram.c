/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 loops */
#include "kernels/reduce/histogram.h"

#include "any_number.h"
#include "run_suite.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct pb_histogram_part part; /* its lanes are zero between uses */

static void take(struct pb_histogram *histogram, const float *value, size_t n)
{
    float min = FLT_MAX, max = -FLT_MAX;
    for (size_t i = 0; i < n; i++)
        if (isfinite(value[i])) {
            min = value[i] < min ? value[i] : min;
            max = value[i] > max ? value[i] : max;
        }
    if (min > max)
        return;
    pb_histogram_part_begin(&part, min, max);
    pb_histogram_part_add(&part, value, n);
    pb_histogram_merge(histogram, &part);
}

static uint64_t at(const struct pb_histogram *h, int64_t bin)
{
    return h->bin[h->side][bin & (PB_HISTOGRAM_BINS - 1)];
}

static void assert_same(const struct pb_histogram *a, const struct pb_histogram *b)
{
    ck_assert(a->used == b->used);
    ck_assert_int_eq(a->e, b->e);
    ck_assert(a->min == b->min && a->max == b->max);
    ck_assert(memcmp(a->bin[a->side], b->bin[b->side], sizeof a->bin[0]) == 0);
}

static struct pb_histogram one, two;

START_TEST(nothing_seen_has_no_buckets)
{
    uint64_t bucket[4];
    double min, max;
    memset(&one, 0, sizeof one);
    const float nothing[] = {NAN, INFINITY, -INFINITY};
    take(&one, nothing, 3);
    ck_assert(!one.used);
    ck_assert_uint_eq(pb_histogram_fold(&one, 4, bucket, &min, &max), 0);
}
END_TEST

START_TEST(exponent_is_the_smallest_that_fits)
{
    for (int i = 0; i < 20000; i++) {
        float a = any_finite(),
              b = i % 4 ? any_finite() : a * (1.0f + (float)(any_bits() % 100) / 1e4f);
        if (!isfinite(b))
            continue;
        float min = fminf(a, b), max = fmaxf(a, b);
        int e = pb_histogram_exponent(min, max);
        ck_assert(pb_histogram_bin_of(max, e) - pb_histogram_bin_of(min, e) < PB_HISTOGRAM_BINS);
        ck_assert(llabs(pb_histogram_bin_of(max, e)) <= 1 << 24);
        ck_assert(llabs(pb_histogram_bin_of(min, e)) <= 1 << 24);
        float largest = fmaxf(fabsf(min), fabsf(max));
        bool finer_fits =
            pb_histogram_bin_of(max, e - 1) - pb_histogram_bin_of(min, e - 1) < PB_HISTOGRAM_BINS;
        ck_assert(!finer_fits || e == ilogbf(largest) - 23 || e == -149);
    }
}
END_TEST

START_TEST(counts_equal_a_naive_count_at_the_final_width)
{
    enum { N = 5000 };
    static float v[N];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++)
            v[i] = i % 97 == 0 ? NAN
                               : (float)((double)(int64_t)any_bits() *
                                         ldexp(1.0, -60 + (int)(any_bits() % 5)));
        v[17] = -1e-40f; /* belongs to bin -1, however wide the bins */
        v[18] = -0.0f;
        memset(&one, 0, sizeof one);
        for (int i = 0; i < N; i += 500)
            take(&one, v + i, 500);
        uint64_t total = 0;
        for (int64_t bin = pb_histogram_bin_of(one.min, one.e);
             bin <= pb_histogram_bin_of(one.max, one.e); bin++) {
            uint64_t naive = 0;
            double low = ldexp((double)bin, one.e), high = ldexp((double)(bin + 1), one.e);
            for (int i = 0; i < N; i++)
                naive += (double)v[i] >= low && (double)v[i] < high;
            ck_assert_uint_eq(at(&one, bin), naive);
            total += naive;
        }
        ck_assert_uint_eq(total, N - (N + 96) / 97);
    }
}
END_TEST

START_TEST(state_does_not_depend_on_order_or_splits)
{
    enum { N = 2000 };
    static float v[N];
    for (int round = 0; round < 60; round++) {
        int spread = round % 6;
        for (int i = 0; i < N; i++)
            v[i] = spread == 0   ? any_finite()
                   : spread == 1 ? (float)(any_bits() % 10000)
                   : spread == 2 ? -1000.0f + (float)(any_bits() % 1000) / 7.0f
                   : spread == 3
                       ? ldexpf((float)(any_bits() % 255) - 127.0f, (int)(any_bits() % 60) - 90)
                   : spread == 4 ? (any_bits() % 50 ? 0.25f : 3e38f)
                                 : (float)(int64_t)any_bits() * 1e-19f;
        memset(&one, 0, sizeof one);
        take(&one, v, N);
        for (int again = 0; again < 10; again++) {
            for (int i = N - 1; i > 0; i--) {
                int j = (int)(any_bits() % (uint64_t)(i + 1));
                float t = v[i];
                v[i] = v[j];
                v[j] = t;
            }
            memset(&two, 0, sizeof two);
            for (size_t i = 0, n; i < N; i += n) {
                n = 1 + any_bits() % 400;
                n = i + n > N ? N - i : n;
                take(&two, v + i, n);
            }
            assert_same(&one, &two);
        }
    }
}
END_TEST

START_TEST(integers_get_buckets_of_their_own)
{
    static float v[256];
    uint64_t bucket[256];
    double min, max;
    for (int i = 0; i < 256; i++)
        v[i] = (float)i;
    memset(&one, 0, sizeof one);
    take(&one, v, 256);
    take(&one, v + 100, 1);
    ck_assert_uint_eq(pb_histogram_fold(&one, 256, bucket, &min, &max), 256);
    ck_assert(min == 0 && max == 256);
    for (int i = 0; i < 256; i++)
        ck_assert_uint_eq(bucket[i], i == 100 ? 2 : 1);
}
END_TEST

START_TEST(folding_keeps_every_count_and_the_limit)
{
    enum { N = 4000 };
    static float v[N];
    static uint64_t bucket[PB_HISTOGRAM_BINS];
    double min, max;
    for (int i = 0; i < N; i++)
        v[i] = (float)(int64_t)any_bits() * 1e-18f;
    memset(&one, 0, sizeof one);
    take(&one, v, N);
    const uint32_t limits[] = {1, 2, 3, 7, 100, 256, 4096};
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        uint32_t n = pb_histogram_fold(&one, limits[l], bucket, &min, &max);
        ck_assert(n >= 1 && n <= limits[l]);
        ck_assert(2 * n >= limits[l] / 2);
        uint64_t total = 0;
        for (uint32_t b = 0; b < n; b++) {
            double low = min + (max - min) / n * b, high = min + (max - min) / n * (b + 1);
            uint64_t naive = 0;
            for (int i = 0; i < N; i++)
                naive += (double)v[i] >= low && (double)v[i] < high;
            ck_assert_uint_eq(bucket[b], naive);
            total += bucket[b];
        }
        ck_assert_uint_eq(total, N);
        ck_assert((double)one.min >= min && (double)one.max < max);
    }
}
END_TEST

START_TEST(constant_has_one_bucket)
{
    uint64_t bucket[8];
    double min, max;
    const float v[] = {0.1f, 0.1f, 0.1f};
    memset(&one, 0, sizeof one);
    take(&one, v, 3);
    ck_assert_uint_eq(pb_histogram_fold(&one, 8, bucket, &min, &max), 1);
    ck_assert(min == (double)0.1f && max > min);
    ck_assert_uint_eq(bucket[0], 3);
    const float zero[] = {0, -0.0f};
    memset(&one, 0, sizeof one);
    take(&one, zero, 2);
    ck_assert_uint_eq(pb_histogram_fold(&one, 8, bucket, &min, &max), 1);
    ck_assert_uint_eq(bucket[0], 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("histogram");
    TCase *tc = tcase_create("histogram");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, nothing_seen_has_no_buckets);
    tcase_add_test(tc, exponent_is_the_smallest_that_fits);
    tcase_add_test(tc, counts_equal_a_naive_count_at_the_final_width);
    tcase_add_test(tc, state_does_not_depend_on_order_or_splits);
    tcase_add_test(tc, integers_get_buckets_of_their_own);
    tcase_add_test(tc, folding_keeps_every_count_and_the_limit);
    tcase_add_test(tc, constant_has_one_bucket);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
