/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "kernels/reduce/moments.h"
#include "kernels/reduce/statistics_key.h"
#include "kernels/reduce/value_counts.h"
#include "kernels/reduce/zone_sums.h"
#include "pipeline/numbers/zones_all.h"

#include "any_number.h"
#include "run_suite.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 4096 };

START_TEST(sums_of_floats_are_those_of_exact_sums)
{
    struct pb_float_sums sums = {.n = 0};
    struct pb_exact_sum sum, squares;
    float value[VALUES];
    double mean, stddev, variance, total, expected;
    pb_exact_sum_init(&sum);
    pb_exact_sum_init(&squares);
    for (int i = 0; i < VALUES; i++) {
        value[i] = i % 7 == 0 ? -value[i / 2] : any_finite();
        pb_exact_sum_add(&sum, (double)value[i]);
        pb_exact_sum_add(&squares, (double)value[i] * (double)value[i]);
    }
    pb_float_sums_add(&sums, value, VALUES);
    pb_float_sums_result(&sums, &mean, &stddev, &total);
    pb_exact_moments(&sum, &squares, VALUES, &expected, &variance);
    ck_assert(mean == expected && stddev == sqrt(variance) && total == pb_exact_sum_round(&sum));
}
END_TEST

START_TEST(edges_of_float32_and_what_is_not_finite)
{
    const float value[] = {FLT_MAX, -FLT_MAX, 0x1p-149F, NAN, INFINITY, -INFINITY, -0.0F};
    struct pb_float_sums sums = {.n = 0}, part = {.n = 0};
    double mean, stddev, total;
    pb_float_sums_add(&sums, value, 3);
    pb_float_sums_add(&part, value + 3, 4);
    ck_assert_uint_eq(part.n, 1);
    ck_assert(part.min == 0 && !signbit(part.min) && !signbit(part.max));
    pb_float_sums_merge(&sums, &part);
    pb_float_sums_result(&sums, &mean, &stddev, &total);
    ck_assert(sums.n == 4 && sums.min == -FLT_MAX && sums.max == FLT_MAX);
    ck_assert(total == 0x1p-149 && mean == 0x1p-151);
}
END_TEST

START_TEST(zones_merge_into_the_same_whatever_the_parts)
{
    enum { ZONES = 16, PARTS = 4 };
    struct pb_zone_sums *whole = malloc(pb_zone_sums_bytes(ZONES, 2));
    struct pb_zone_sums *merged = malloc(pb_zone_sums_bytes(ZONES, 2));
    struct pb_zone_sums *part[PARTS];
    pb_zone_sums_begin(whole, ZONES, 2);
    pb_zone_sums_begin(merged, ZONES, 2);
    for (int i = 0; i < PARTS; i++) {
        part[i] = malloc(pb_zone_sums_bytes(ZONES, 2));
        pb_zone_sums_begin(part[i], ZONES, 2);
    }
    for (int i = 0; i < VALUES; i++) {
        struct pb_zone_sums *const to[] = {whole, part[any_bits() % PARTS]};
        const uint64_t key = any_bits() % ZONES << 32 | 7;
        const float value[] = {any_finite(), i % 5 == 0 ? NAN : (float)i};
        for (int k = 0; k < 2; k++) {
            const int32_t zone = pb_zone_sums_find(to[k], key);
            ck_assert_int_ge(zone, 0);
            pb_zone_sums_pixels(to[k], zone, 1, i);
            pb_zone_sums_values(to[k], zone, 0, &value[0], 1);
            pb_zone_sums_values(to[k], zone, 1, &value[1], 1);
        }
    }
    ck_assert_int_eq(pb_zone_sums_find(whole, 1), -1); /* it is full */
    for (int i = 0; i < PARTS; i++) {
        ck_assert(pb_zone_sums_merge(merged, part[i]));
        ck_assert_uint_eq(pb_zone_sums_count(part[i]), 0);
        free(part[i]);
    }
    ck_assert_uint_eq(pb_zone_sums_count(merged), ZONES);
    for (uint32_t i = 0; i < ZONES; i++) {
        const struct pb_zone *zone = pb_zone_sums_zone(whole, i);
        const uint32_t k = (uint32_t)pb_zone_sums_find(merged, zone->key);
        const struct pb_zone *same = pb_zone_sums_zone(merged, k);
        ck_assert(same->pixels == zone->pixels && same->area == zone->area);
        for (uint32_t b = 0; b < 2; b++)
            ck_assert_mem_eq(pb_zone_sums_band(whole, i, b), pb_zone_sums_band(merged, k, b),
                             sizeof(struct pb_float_sums));
    }
    free(whole);
    free(merged);
}
END_TEST

static struct pb_value_counts *counts_of(uint32_t entries)
{
    struct pb_value_counts *counts = malloc(pb_value_counts_bytes(entries));
    pb_value_counts_begin(counts, entries);
    return counts;
}

static void count(struct pb_value_counts *into, struct pb_value_counts *part, uint64_t group,
                  const float *value, size_t n)
{
    for (size_t done = 0; done < n;) {
        done += pb_value_counts_add(part, group, value + done, n - done);
        if (done < n)
            ck_assert(pb_value_counts_merge(into, part));
    }
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* numpy's rule. */
static double percentile(const float *sorted, size_t n, double p)
{
    const double at = p / 100 * (double)(n - 1);
    const size_t i = (size_t)floor(at);
    const double low = (double)sorted[i], high = (double)sorted[i + 1 < n ? i + 1 : i];
    return low + (high - low) * (at - floor(at));
}

START_TEST(values_that_fit_are_counted_exactly)
{
    struct pb_value_counts *counts = counts_of(1024), *part = counts_of(64);
    float value[VALUES];
    size_t n;
    double error = 0;
    for (int i = 0; i < VALUES; i++)
        value[i] = (float)(any_bits() % 300) - 100;
    value[1] = value[0] = value[2] = -0.0F;
    value[3] = NAN;
    count(counts, part, 5, value, VALUES);
    count(counts, part, UINT64_C(5) << 32, value, 10);
    ck_assert(pb_value_counts_merge(counts, part));
    pb_value_counts_sort(counts);
    ck_assert_uint_eq(pb_value_counts_level(counts), 0);
    ck_assert_ptr_null(pb_value_counts_of(counts, 6, &n));
    const struct pb_value_count *entry = pb_value_counts_of(counts, 5, &n);
    uint64_t of[400] = {0}, most = 0;
    value[3] = value[VALUES - 1];
    for (int i = 0; i < VALUES - 1; i++)
        of[(int)value[i] + 100]++;
    size_t variety = 0, majority = 0;
    for (size_t i = 0; i < 400; i++) {
        variety += of[i] > 0;
        majority = of[i] > most ? i : majority;
        most = of[i] > most ? of[i] : most;
    }
    ck_assert_uint_eq(n, variety);
    ck_assert(pb_value_of_key(pb_value_majority(entry, n)->key, 0, &error) ==
              (double)majority - 100);
    qsort(value, VALUES - 1, sizeof value[0], ascending);
    for (double p = 0; p <= 100; p += 12.5)
        ck_assert(pb_value_percentile(entry, n, 0, p, &error) == percentile(value, VALUES - 1, p));
    ck_assert(error == 0);
    free(counts);
    free(part);
}
END_TEST

/* The same level, counts and percentiles for any order and parts; the error is at most the reported
 * one. */
START_TEST(values_that_do_not_fit_keep_the_reported_error)
{
    float value[VALUES], sorted[VALUES];
    uint32_t level = 0;
    double found[3][5];
    for (int i = 0; i < VALUES; i++)
        value[i] = sorted[i] = (float)(any_bits() >> 40) * 0x1p-23F - 1;
    qsort(sorted, VALUES, sizeof sorted[0], ascending);
    for (int turn = 0; turn < 3; turn++) {
        struct pb_value_counts *counts = counts_of(512), *part = counts_of(turn == 1 ? 32 : 256);
        size_t n;
        for (size_t i = VALUES; turn > 0 && i-- > 1;) {
            const size_t j = any_bits() % (i + 1);
            const float swap = value[i];
            value[i] = value[j];
            value[j] = swap;
        }
        count(counts, part, 1, value, VALUES);
        ck_assert(pb_value_counts_merge(counts, part));
        pb_value_counts_sort(counts);
        ck_assert(turn == 0 || pb_value_counts_level(counts) == level);
        level = pb_value_counts_level(counts);
        ck_assert_uint_gt(level, 0);
        const struct pb_value_count *entry = pb_value_counts_of(counts, 1, &n);
        ck_assert_uint_le(n, 512);
        for (int i = 0; i < 5; i++) {
            double error = 0;
            found[turn][i] = pb_value_percentile(entry, n, level, 25.0 * i, &error);
            const double exact = percentile(sorted, VALUES, 25.0 * i);
            ck_assert_msg(fabs(found[turn][i] - exact) <= error, "%g is not %g within %g",
                          found[turn][i], exact, error);
            ck_assert(error < ldexp(fabs(exact) + 0.01, (int)level - 23));
            ck_assert(found[turn][i] == found[0][i]);
        }
        free(counts);
        free(part);
    }
}
END_TEST

START_TEST(more_groups_than_entries_are_an_error)
{
    struct pb_value_counts *counts = counts_of(16), *part = counts_of(64);
    const struct pb_zones_shape plain = {.zones = 1 << 20, .bands = 1, .workers = 1};
    struct pb_zones_shape counting = plain;
    const float value[] = {-1, 1, 2};
    for (uint64_t group = 0; group < 8; group++) /* two values of each always fit */
        ck_assert_uint_eq(pb_value_counts_add(part, group, value, 3), 3);
    ck_assert(pb_value_counts_merge(counts, part));
    ck_assert_uint_le(pb_value_counts_level(counts), 31);
    for (uint64_t group = 0; group < 17; group++)
        ck_assert_uint_eq(pb_value_counts_add(part, group, value, 1), 1);
    ck_assert(!pb_value_counts_merge(counts, part));
    free(counts);
    free(part);
    counting.counts_values = true;
    ck_assert_uint_ge(pb_zones_bytes(&counting) - pb_zones_bytes(&plain),
                      pb_value_counts_bytes(2 << 20));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("zone_sums");
    TCase *tc = tcase_create("sums");
    tcase_add_test(tc, sums_of_floats_are_those_of_exact_sums);
    tcase_add_test(tc, edges_of_float32_and_what_is_not_finite);
    tcase_add_test(tc, zones_merge_into_the_same_whatever_the_parts);
    tcase_add_test(tc, values_that_fit_are_counted_exactly);
    tcase_add_test(tc, values_that_do_not_fit_keep_the_reported_error);
    tcase_add_test(tc, more_groups_than_entries_are_an_error);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
