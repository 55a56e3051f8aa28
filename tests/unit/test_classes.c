/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Reductions that find classes: the means of clusters against sums of whole numbers, Otsu's
 * threshold against every threshold tried; the same whatever the split and the order. */
#include "kernels/reduce/cluster_sums.h"
#include "kernels/reduce/reduce.h"

#include "any_number.h"
#include "run_suite.h"

#include <check.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6000, PARTS = 4, BANDS = 2, CLASSES = 3 };

static const struct pb_samples any = {.n = 0};

static float any_float(void)
{
    uint32_t bits = any_number();
    float value;
    memcpy(&value, &bits, sizeof value);
    return isfinite(value) ? value : -0.0F;
}

static void *new_state(const struct pb_reduce *reduce, const struct pb_samples *samples,
                       const float *numbers)
{
    void *state = malloc(pb_reduce_bytes(reduce, samples));
    pb_reduce_begin(reduce, samples, numbers, state);
    return state;
}

/* One round over planes of n pixels that are cut at random and given to states; returns the value
 * of pb_reduce_end. */
static uint32_t run_round(const struct pb_reduce *reduce, void **state, const float *const *planes,
                          size_t n, double *out)
{
    for (size_t at = 0; at < n;) {
        const float *part[PB_REDUCE_INPUTS_MAX];
        size_t left = n - at, count = 1 + any_number() % 700;
        count = count < left ? count : left;
        for (uint32_t i = 0; i < reduce->n_inputs; i++)
            part[i] = planes[i] + at;
        pb_reduce_add(reduce, state[1 + any_number() % PARTS], part, (int32_t)count, 1);
        at += count;
    }
    for (int s = PARTS; s > 0; s--)
        pb_reduce_merge(reduce, state[0], state[s]);
    uint32_t others = pb_reduce_end(reduce, state[0], out);
    for (int s = PARTS; s >= 0 && others > 0; s--)
        pb_reduce_again(reduce, state[s], state[0]);
    return others;
}

static int reduce_all(const struct pb_reduce *reduce, const struct pb_samples *samples,
                      const float *numbers, const float *const *planes, size_t n, double *out)
{
    void *state[PARTS + 1];
    int rounds = 1;
    for (int s = 0; s <= PARTS; s++)
        state[s] = new_state(reduce, samples, numbers);
    while (run_round(reduce, state, planes, n, out) > 0)
        rounds++;
    for (int s = 0; s <= PARTS; s++)
        free(state[s]);
    return rounds;
}

static struct pb_reduce clusters(uint32_t classes, uint32_t bands, uint32_t rounds, bool sorted)
{
    struct pb_clusters_shape shape = {classes, bands, rounds, sorted};
    return pb_reduce_clusters(&shape);
}

START_TEST(means_are_those_of_exact_sums)
{
    static float class[N], band[BANDS][N];
    const float *const planes[] = {class, band[0], band[1]};
    const float start[CLASSES * BANDS] = {0};
    struct pb_reduce reduce = clusters(CLASSES, BANDS, 9, false);
    int64_t sum[CLASSES][BANDS] = {0}, pixels[CLASSES] = {0};
    double out[PB_REDUCE_RESULTS_MAX];
    for (size_t i = 0; i < N; i++) {
        uint32_t c = any_number() % (CLASSES + 1);
        class[i] = c < CLASSES ? (float)(c + 1) : NAN;
        for (int b = 0; b < BANDS; b++) { /* whole numbers of 24 bits, times 2^-11 and 2^90 */
            int32_t whole = (int32_t)(any_number() & 0xffffff) - 0x700000;
            band[b][i] = ldexpf((float)whole, b ? 90 : -11);
            if (c < CLASSES)
                sum[c][b] += whole;
        }
        if (c < CLASSES)
            pixels[c]++;
    }
    void *state[PARTS + 1];
    for (int s = 0; s <= PARTS; s++)
        state[s] = new_state(&reduce, &any, start);
    ck_assert_uint_eq(run_round(&reduce, state, planes, N, out), CLASSES * BANDS);
    ck_assert_uint_eq(run_round(&reduce, state, planes, N, out), 0); /* the same pixels: at rest */
    for (int c = 0; c < CLASSES; c++)
        for (int b = 0; b < BANDS; b++) {
            double mean = (double)sum[c][b] / (double)pixels[c];
            ck_assert(out[b * CLASSES + c] == (double)(float)ldexp(mean, b ? 90 : -11));
        }
    for (int c = 0; c < CLASSES; c++)
        ck_assert(out[BANDS * CLASSES + c] == (double)pixels[c]);
    ck_assert(out[BANDS * CLASSES + CLASSES] == 2 && out[BANDS * CLASSES + CLASSES + 1] == 1);
    for (int s = 0; s <= PARTS; s++)
        free(state[s]);
}
END_TEST

START_TEST(sums_do_not_depend_on_the_split)
{
    static float class[N], band[N];
    const float *const planes[] = {class, band};
    const float start[2] = {1, 2};
    struct pb_reduce reduce = clusters(2, 1, 2, true);
    double first[PB_REDUCE_RESULTS_MAX] = {0}, again[PB_REDUCE_RESULTS_MAX] = {0};
    for (size_t i = 0; i < N; i++) {
        class[i] = any_number() % 2 ? 1 : 2;
        band[i] = any_float();
    }
    (void)reduce_all(&reduce, &any, start, planes, N, first);
    for (int i = 0; i < 8; i++) {
        (void)reduce_all(&reduce, &any, start, planes, N, again);
        ck_assert(memcmp(first, again, sizeof first) == 0);
    }
}
END_TEST

/* Sums of the pixels of a part, as a device makes them. */
static void sum_up(const float *const *planes, size_t n, uint32_t classes, uint32_t bands,
                   int32_t *sums)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t c = (uint32_t)planes[0][i] - 1;
        sums[c]++;
        for (uint32_t b = 0; b < bands; b++) {
            const struct pb_cluster_digits d = pb_cluster_digits_of(planes[1 + b][i]);
            for (uint32_t k = 0; k < 3; k++)
                sums[pb_cluster_sums_at(classes, bands, d.limb + k, b * classes + c)] += d.digit[k];
        }
    }
}

START_TEST(sums_of_parts_are_those_of_their_pixels)
{
    enum { WORDS = CLASSES * (1 + PB_CLUSTER_LIMBS * BANDS), STRIDE = WORDS + 5, CUTS = 7 };
    static float class[N], band[BANDS][N];
    static int32_t sums[CUTS * STRIDE];
    const float start[CLASSES * BANDS] = {0};
    struct pb_reduce reduce = clusters(CLASSES, BANDS, 2, false);
    double by_pixel[PB_REDUCE_RESULTS_MAX] = {0}, by_sum[PB_REDUCE_RESULTS_MAX] = {0};
    ck_assert_uint_eq(pb_cluster_sums_words(CLASSES, BANDS), WORDS);
    ck_assert(pb_reduce_has_sums(&reduce));
    for (size_t i = 0; i < N; i++) {
        class[i] = (float)(1 + any_number() % CLASSES);
        for (int b = 0; b < BANDS; b++) /* the extremes of all exponents among them */
            band[b][i] = i % 9 ? any_float() : i % 2 ? -FLT_MAX : 1e-45F;
    }
    const float *const planes[] = {class, band[0], band[1]};
    for (size_t p = 0, at = 0, next; p < CUTS; p++, at = next) {
        next = p + 1 < CUTS ? at + any_number() % (N / CUTS) : N;
        const float *const part[] = {class + at, band[0] + at, band[1] + at};
        sum_up(part, next - at, CLASSES, BANDS, &sums[p * STRIDE]);
    }
    void *pixels = new_state(&reduce, &any, start), *summed = new_state(&reduce, &any, start);
    pb_reduce_add(&reduce, pixels, planes, N, 1);
    pb_reduce_add_sums(&reduce, summed, sums, STRIDE, CUTS);
    ck_assert_uint_eq(pb_reduce_end(&reduce, pixels, by_pixel),
                      pb_reduce_end(&reduce, summed, by_sum));
    ck_assert(memcmp(by_pixel, by_sum, sizeof by_pixel) == 0);
    ck_assert(memcmp(pb_reduce_next(&reduce, pixels), pb_reduce_next(&reduce, summed),
                     sizeof start) == 0);
    free(pixels);
    free(summed);
}
END_TEST

START_TEST(limbs_hold_the_largest_part)
{
    const struct pb_cluster_digits most = pb_cluster_digits_of(ldexpf(65535.0F, 16 * 3 - 149));
    ck_assert(most.limb == 3 || most.limb == 2);
    for (int k = 0; k < 3; k++) {
        ck_assert_int_le(most.digit[k], 65535);
        ck_assert_int_le((int64_t)most.digit[k] * PB_CLUSTER_PART_PX, INT32_MAX);
    }
}
END_TEST

START_TEST(what_is_no_class_is_left_out)
{
    const float class[] = {0, -1, NAN, INFINITY, 3, 1e30F, 0.5F, 2},
                band[8] = {9, 9, 9, 9, 9, 9, 9, 4};
    const float *const planes[] = {class, band};
    const float start[2] = {1, 4};
    struct pb_reduce reduce = clusters(2, 1, 5, true);
    double out[PB_REDUCE_RESULTS_MAX];
    ck_assert_int_eq(reduce_all(&reduce, &any, start, planes, 8, out), 1);
    ck_assert(out[0] == 1 && out[1] == 4 && out[2] == 0 && out[3] == 1 && out[5] == 1);
}
END_TEST

START_TEST(centres_are_sorted_band_by_band)
{
    const float class[] = {1, 1, 2, 3}, band[2][4] = {{8, 8, 5, 8}, {3, 3, 1, 2}};
    const float *const planes[] = {class, band[0], band[1]};
    const float start[6] = {1, 2, 3, 1, 2, 3};
    struct pb_reduce reduce = clusters(3, 2, 2, true);
    double out[PB_REDUCE_RESULTS_MAX];
    ck_assert_int_eq(reduce_all(&reduce, &any, start, planes, 4, out), 2);
    const double sorted[] = {5, 8, 8, 1, 2, 3, 2, 1, 1, 2, 1};
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++)
        ck_assert_msg(out[i] == sorted[i], "result %zu is %g", i, out[i]);
}
END_TEST

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* The best of all thresholds between sorted whole numbers, the first of equals. */
static float best_threshold(const float *value, size_t n)
{
    float *sorted = malloc(n * sizeof *sorted), best;
    size_t valid = 0;
    long double total = 0, below = 0, greatest = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(value[i]))
            sorted[valid++] = value[i];
    qsort(sorted, valid, sizeof *sorted, ascending);
    for (size_t i = 0; i < valid; i++)
        total += sorted[i];
    best = sorted[valid - 1];
    for (size_t i = 0; i + 1 < valid; i++) {
        below += sorted[i];
        if (sorted[i] == sorted[i + 1])
            continue;
        long double lower = below / (i + 1), upper = (total - below) / (valid - i - 1);
        long double variance = (lower - upper) * (lower - upper) * (i + 1) * (valid - i - 1);
        if (variance > greatest * (1 + 1e-15L)) {
            greatest = variance;
            best = sorted[i];
        }
    }
    free(sorted);
    return best;
}

static float two_hills(uint32_t width)
{
    uint32_t a = any_number() % width, b = any_number() % width;
    return (float)((a + b) / 4 + (any_number() % 3 ? 0 : width / 2));
}

START_TEST(otsu_finds_the_best_threshold)
{
    static float value[N];
    static const struct pb_samples kinds[] = {
        {.n = 0}, {.first = 0, .n = 65536}, {.n = 65536, .scaled = true, .scale = -1, .offset = 0}};
    const float *const planes[] = {value};
    struct pb_reduce reduce = pb_reduce_threshold();
    double out[PB_REDUCE_RESULTS_MAX];
    for (size_t k = 0; k < 3; k++)
        for (uint32_t width = 2; width <= 65536; width *= 8) {
            float sign = kinds[k].scaled ? -1 : 1;
            for (size_t i = 0; i < N; i++)
                value[i] = any_number() % 9 ? sign * two_hills(width) : NAN;
            int rounds = reduce_all(&reduce, &kinds[k], NULL, planes, N, out);
            ck_assert_int_eq(rounds, pb_reduce_rounds(&reduce, &kinds[k]));
            float best = best_threshold(value, N);
            size_t below = 0, above = 0;
            for (size_t i = 0; i < N; i++) {
                below += value[i] <= best;
                above += value[i] > best;
            }
            ck_assert(out[PB_THRESHOLD_BELOW] == (double)below &&
                      out[PB_THRESHOLD_ABOVE] == (double)above);
            ck_assert(out[PB_THRESHOLD_VALUE] >= (double)best);
            ck_assert(kinds[k].n == 0 || out[PB_THRESHOLD_VALUE] == (double)best);
            ck_assert((out[PB_THRESHOLD_WIDTH] == 0) == (kinds[k].n > 0));
        }
}
END_TEST

START_TEST(otsu_of_any_floats)
{
    static float value[N];
    const float *const planes[] = {value};
    struct pb_reduce reduce = pb_reduce_threshold();
    double first[PB_REDUCE_RESULTS_MAX] = {0}, again[PB_REDUCE_RESULTS_MAX] = {0};
    for (size_t i = 0; i < N; i++)
        value[i] = any_float();
    value[0] = FLT_MAX;
    value[1] = -FLT_MAX;
    for (int i = 0; i < 4; i++) {
        (void)reduce_all(&reduce, &any, NULL, planes, N, i ? again : first);
        ck_assert(i == 0 || memcmp(first, again, sizeof first) == 0);
    }
    value[0] = 1e-45F; /* the least there is, and nothing else */
    ck_assert_int_eq(reduce_all(&reduce, &any, NULL, planes, 1, first), 2);
    ck_assert(first[PB_THRESHOLD_VALUE] >= 1e-45 && first[PB_THRESHOLD_BELOW] == 1);
    value[0] = NAN;
    ck_assert_int_eq(reduce_all(&reduce, &any, NULL, planes, 1, first), 1);
    ck_assert(isnan(first[PB_THRESHOLD_VALUE]));
}
END_TEST

START_TEST(results_have_names)
{
    static const char *const names[] = {"centre of class 1",
                                        "centre of class 2",
                                        "centre of class 1",
                                        "centre of class 2",
                                        "pixels of class 1",
                                        "pixels of class 2",
                                        "rounds",
                                        "converged"};
    struct pb_reduce reduce = clusters(2, 2, 3, true);
    ck_assert_uint_eq(reduce.n, 8);
    for (uint32_t k = 0; k < reduce.n; k++) {
        char text[40];
        pb_reduce_name(&reduce, k, text, sizeof text);
        ck_assert_str_eq(text, names[k]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("classes");
    TCase *tc = tcase_create("classes");
    tcase_add_test(tc, means_are_those_of_exact_sums);
    tcase_add_test(tc, sums_do_not_depend_on_the_split);
    tcase_add_test(tc, sums_of_parts_are_those_of_their_pixels);
    tcase_add_test(tc, limbs_hold_the_largest_part);
    tcase_add_test(tc, what_is_no_class_is_left_out);
    tcase_add_test(tc, centres_are_sorted_band_by_band);
    tcase_add_test(tc, otsu_finds_the_best_threshold);
    tcase_add_test(tc, otsu_of_any_floats);
    tcase_add_test(tc, results_have_names);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
