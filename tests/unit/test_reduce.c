/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
/* Reductions: percentiles against sorted values, moments against long sums, and both the same
 * whatever the split and the order. */
#include "kernels/reduce/moments.h"
#include "kernels/reduce/reduce.h"

#include "any_number.h"
#include "run_suite.h"

#include <check.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 20000, PARTS = 5 };

static const struct pb_samples any = {.n = 0};

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* numpy's default. NaN when there is no value. */
static double expected(const float *value, size_t n, double p)
{
    float *sorted = malloc((n + 1) * sizeof *sorted);
    size_t valid = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(value[i]))
            sorted[valid++] = value[i];
    double result = NAN;
    if (valid > 0) {
        qsort(sorted, valid, sizeof *sorted, ascending);
        double rank = (double)(valid - 1) * (p / 100.0), below = floor(rank), t = rank - below;
        double low = sorted[(size_t)below];
        double high = (size_t)below + 1 < valid ? sorted[(size_t)below + 1] : low;
        result = t < 0.5 ? low + (high - low) * t : high - (high - low) * (1 - t);
    }
    free(sorted);
    return result;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Reduces `value`, cut into parts that are taken in turn by PARTS states, merged backwards. Returns
 * the rounds. */
static int reduce_all(const struct pb_reduce *reduce, const struct pb_samples *samples,
                      const float *value, size_t n, double *out)
{
    void *state[PARTS + 1];
    int rounds = 0;
    for (int s = 0; s <= PARTS; s++) {
        state[s] = malloc(pb_reduce_bytes(reduce, samples));
        pb_reduce_begin(reduce, samples, NULL, state[s]);
    }
    bool done = false;
    while (!done) {
        rounds++;
        for (size_t at = 0, turn = 0; at < n; turn++) {
            size_t count = n - at < 64 * (1 + turn % 7) ? n - at : 64 * (1 + turn % 7);
            const float *plane = value + at;
            pb_reduce_add(reduce, state[1 + any_number() % PARTS], &plane, (int32_t)count, 1);
            at += count;
        }
        for (int s = PARTS; s > 0; s--)
            pb_reduce_merge(reduce, state[0], state[s]);
        done = pb_reduce_end(reduce, state[0], out) == 0;
        for (int s = PARTS; s >= 0 && !done; s--)
            pb_reduce_again(reduce, state[s], state[0]);
    }
    for (int s = 0; s <= PARTS; s++)
        free(state[s]);
    return rounds;
}

static void check_percentiles(const float *value, size_t n, const struct pb_samples *samples)
{
    static const double p[] = {0, 0.01, 2, 37.5, 50, 98, 99.99, 100};
    struct pb_reduce reduce = pb_reduce_percentiles(p, PB_PERCENTILES_MAX);
    double out[PB_PERCENTILES_MAX];
    int rounds = reduce_all(&reduce, samples, value, n, out);
    ck_assert_int_le(rounds, pb_reduce_rounds(&reduce, samples));
    for (size_t i = 0; i < PB_PERCENTILES_MAX; i++)
        ck_assert_msg(same(out[i], expected(value, n, p[i])),
                      "percentile %g of %zu: %.17g != %.17g", p[i], n, out[i],
                      expected(value, n, p[i]));
}

static float random_float(int kind)
{
    uint32_t bits = any_number();
    float value;
    switch (kind) {
    case 0:
        memcpy(&value, &bits, sizeof value); /* any bits: NaN, infinite, denormal, -0 */
        return value;
    case 1:
        return (float)(bits % 1000) / 999.0F; /* one binade mostly */
    case 2:
        return bits % 3 ? -1.5F : 1e30F; /* few values, far apart */
    case 3:
        return bits % 7 ? NAN : (float)bits;
    default:
        return 0.25F;
    }
}

START_TEST(percentiles_are_those_of_the_sorted_values)
{
    static float value[N];
    static const size_t sizes[] = {1, 3, 1000, N};
    for (int kind = 0; kind <= 4; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (size_t i = 0; i < sizes[s]; i++)
                value[i] = random_float(kind);
            check_percentiles(value, sizes[s], &any);
        }
    value[0] = NAN;
    check_percentiles(value, 1, &any);
    check_percentiles(value, 0, &any);
}
END_TEST

/* The ranks of a percentile are in different upper halves of the key. */
START_TEST(neighbours_may_be_far_apart)
{
    float value[100];
    double p = 50, out;
    for (int i = 0; i < 100; i++)
        value[i] = i < 50 ? -3.0F - (float)i : 1000.0F + (float)i;
    struct pb_reduce reduce = pb_reduce_percentiles(&p, 1);
    ck_assert_int_eq(reduce_all(&reduce, &any, value, 100, &out), 2);
    ck_assert(out == (-3.0 + 1050.0) / 2);
}
END_TEST

START_TEST(samples_take_one_round)
{
    static float value[N];
    static const struct pb_samples kinds[] = {
        {.first = 0, .n = 256},
        {.first = -32768, .n = 65536, .scaled = true, .scale = 0.0001F, .offset = -0.1F},
        {.first = 0, .n = 65536, .scaled = true, .scale = -2.5F, .offset = 7},
        {.first = 0, .n = 65536, .scaled = true, .scale = 2.75e-5F, .offset = -0.2F},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct pb_samples *s = &kinds[k];
        ck_assert(pb_samples_are_distinct(s));
        for (size_t i = 0; i < N; i++) {
            float sample = (float)(s->first + (int32_t)(any_number() % s->n));
            value[i] = any_number() % 9 == 0 ? NAN
                       : s->scaled           ? sample * s->scale + s->offset
                                             : sample;
        }
        ck_assert_int_eq(pb_percentiles_rounds(s), 1);
        check_percentiles(value, N, s);
    }
}
END_TEST

START_TEST(samples_that_fall_together_are_refused)
{
    /* an offset so large that neighbours are one float */
    struct pb_samples s = {.n = 65536, .scaled = true, .scale = 1e-4F, .offset = 1e6F};
    ck_assert(!pb_samples_are_distinct(&s));
    s = (struct pb_samples){.n = 256, .scaled = true, .scale = 0, .offset = 3};
    ck_assert(!pb_samples_are_distinct(&s));
    s = (struct pb_samples){.n = 65536, .scaled = true, .scale = 1e38F, .offset = 0};
    ck_assert(!pb_samples_are_distinct(&s));
    ck_assert(!pb_samples_are_distinct(&any));
}
END_TEST

START_TEST(moments_do_not_depend_on_the_split)
{
    static float value[N];
    double first[PB_MOMENTS_N], again[PB_MOMENTS_N];
    struct pb_reduce reduce = pb_reduce_moments();
    long double sum = 0, squares = 0;
    uint64_t valid = 0;
    for (size_t i = 0; i < N; i++) {
        value[i] = any_number() % 5 == 0 ? NAN : (float)(any_number() % 100000) * 1e-3F - 20;
        if (isfinite(value[i])) {
            sum += value[i];
            squares += (long double)value[i] * value[i];
            valid++;
        }
    }
    ck_assert_int_eq(reduce_all(&reduce, &any, value, N, first), 1);
    for (int i = 0; i < 5; i++) {
        (void)reduce_all(&reduce, &any, value, N, again);
        ck_assert(memcmp(first, again, sizeof first) == 0);
    }
    long double mean = sum / valid;
    ck_assert_double_eq_tol(first[PB_MOMENTS_MEAN], (double)mean, 1e-12);
    ck_assert_double_eq_tol(first[PB_MOMENTS_STDDEV], sqrt((double)(squares / valid - mean * mean)),
                            1e-9);
    ck_assert(first[PB_MOMENTS_MINIMUM] == expected(value, N, 0));
    ck_assert(first[PB_MOMENTS_MAXIMUM] == expected(value, N, 100));
    value[0] = NAN;
    (void)reduce_all(&reduce, &any, value, 1, first);
    for (int i = 0; i < PB_MOMENTS_N; i++)
        ck_assert(isnan(first[i]));
}
END_TEST

START_TEST(results_have_names)
{
    static const double p[] = {2, 99.5};
    struct pb_reduce percentiles = pb_reduce_percentiles(p, 2), moments = pb_reduce_moments();
    char text[40];
    pb_reduce_name(&percentiles, 1, text, sizeof text);
    ck_assert_str_eq(text, "percentile 99.5");
    pb_reduce_name(&moments, PB_MOMENTS_STDDEV, text, sizeof text);
    ck_assert_str_eq(text, "standard deviation");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reduce");
    TCase *tc = tcase_create("reduce");
    tcase_add_test(tc, percentiles_are_those_of_the_sorted_values);
    tcase_add_test(tc, neighbours_may_be_far_apart);
    tcase_add_test(tc, samples_take_one_round);
    tcase_add_test(tc, samples_that_fall_together_are_refused);
    tcase_add_test(tc, moments_do_not_depend_on_the_split);
    tcase_add_test(tc, results_have_names);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
