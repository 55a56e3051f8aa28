/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/components.h"
#include "kernels/pixel.h"
#include "kernels/reduce/eigen.h"
#include "kernels/reduce/exact_sum.h"

#include <stdbool.h>
#include <string.h>

enum { RUN = 64, HALF = RUN / 2, LANES = 8, BANDS_MAX = PB_COMPONENTS_MAX };

struct pb_components {
    struct pb_components_shape shape;
    uint64_t pixels;
    struct pb_exact_sum sum[]; /* of bands; then of products of band 0 with 0, 1 with 0, 1 with 1 */
};

static uint32_t sums_of(uint32_t bands)
{
    return bands + bands * (bands + 1) / 2;
}

size_t pb_components_bytes(const struct pb_components_shape *shape)
{
    return sizeof(struct pb_components) + sums_of(shape->bands) * sizeof(struct pb_exact_sum);
}

void pb_components_begin(struct pb_components *k, const struct pb_components_shape *shape)
{
    memset(k, 0, pb_components_bytes(shape));
    k->shape = *shape;
}

/* --- sums ------------------------------------------------------------------------------------ */

/* The pixels of a run in all bands, 0 where one of them is not finite. */
struct run {
    double px[BANDS_MAX][RUN];
    uint32_t valid;
};

static void load_run(struct run *run, const float *const *planes, uint32_t bands, size_t at,
                     int32_t n)
{
    float good[RUN] = {0};

    for (int32_t i = 0; i < n; i++)
        good[i] = 1.0f;
    for (uint32_t b = 0; b < bands; b++)
        for (int32_t i = 0; i < n; i++)
            good[i] = fabsf(planes[b][at + (size_t)i]) <= FLT_MAX ? good[i] : 0.0f;
    run->valid = 0;
    for (int32_t i = 0; i < n; i++)
        run->valid += good[i] != 0.0f;
    for (uint32_t b = 0; b < bands; b++) {
        for (int32_t i = 0; i < n; i++)
            run->px[b][i] = good[i] != 0.0f ? (double)planes[b][at + (size_t)i] : 0.0;
        for (int32_t i = n; i < RUN; i++)
            run->px[b][i] = 0.0;
    }
}

static inline double fold_lanes(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static inline double sum_of(const double *x)
{
    double lane[LANES] = {0};

    for (int i = 0; i < RUN; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l];
    return fold_lanes(lane);
}

static inline double product_of(const double *x, const double *y)
{
    double lane[LANES] = {0};

    for (int i = 0; i < HALF; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l] * y[i + l];
    return fold_lanes(lane);
}

/* Written so that compilers turn the loops over lanes into vectors. */
PB_CLONES static void take_run(struct pb_components *k, const struct run *run)
{
    const uint32_t bands = k->shape.bands;
    struct pb_exact_sum *product = &k->sum[bands];

    k->pixels += run->valid;
    for (uint32_t b = 0; b < bands; b++)
        pb_exact_sum_add(&k->sum[b], sum_of(run->px[b]));
    for (uint32_t b = 0; b < bands; b++)
        for (uint32_t c = 0; c <= b; c++, product++)
            for (int half = 0; half < RUN; half += HALF)
                pb_exact_sum_add(product, product_of(run->px[b] + half, run->px[c] + half));
}

void pb_components_add(struct pb_components *k, const float *const *planes, int32_t w, int32_t h)
{
    struct run run;

    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w; x += RUN) {
            load_run(&run, planes, k->shape.bands, (size_t)y * (size_t)w + (size_t)x,
                     w - x < RUN ? w - x : RUN);
            if (run.valid > 0)
                take_run(k, &run);
        }
}

void pb_components_merge(struct pb_components *into, const struct pb_components *from)
{
    into->pixels += from->pixels;
    for (uint32_t i = 0; i < sums_of(into->shape.bands); i++)
        pb_exact_sum_merge(&into->sum[i], &from->sum[i]);
}

/* --- results --------------------------------------------------------------------------------- */

/* Covariances with n - 1, of one pixel 0. */
static void find_covariances(const struct pb_components *k, double *matrix)
{
    const uint32_t n = k->shape.bands;
    const struct pb_exact_sum *product = &k->sum[n];
    const double pixels = (double)k->pixels;
    const double sample = k->pixels > 1 ? pixels / (pixels - 1.0) : 0.0;

    for (uint32_t b = 0; b < n; b++)
        for (uint32_t c = 0; c <= b; c++, product++)
            matrix[b * n + c] = matrix[c * n + b] =
                pb_exact_covariance(product, &k->sum[b], &k->sum[c], k->pixels) * sample;
}

/* A band of one value has no correlation with another, and none with itself. */
static void make_correlations(uint32_t n, const double *deviation, double *matrix)
{
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t c = 0; c < n; c++) {
            const bool spread = deviation[b] > 0.0 && deviation[c] > 0.0;

            matrix[b * n + c] = !spread  ? 0.0
                                : b == c ? 1.0
                                         : matrix[b * n + c] / deviation[b] / deviation[c];
        }
    for (uint32_t b = 0; b < n; b++) /* divided in one order on both sides of the diagonal */
        for (uint32_t c = 0; c < b; c++)
            matrix[c * n + b] = matrix[b * n + c];
}

static void give_results(const struct pb_components *k, const double *value, const double *vector,
                         double *out)
{
    const uint32_t n = k->shape.bands;
    double total = 0.0;

    for (uint32_t c = 0; c < n; c++)
        total += value[c];
    for (uint32_t c = 0; c < n; c++) {
        double *const at = &out[pb_components_at(&k->shape, c)];

        at[PB_COMPONENT_EIGENVALUE] = value[c];
        at[PB_COMPONENT_SHARE] = total > 0.0 ? value[c] / total : 0.0;
        memcpy(&at[PB_COMPONENT_VECTOR], &vector[c * n], n * sizeof *vector);
    }
}

void pb_components_end(const struct pb_components *k, double *out)
{
    const uint32_t n = k->shape.bands, last = pb_components_results(&k->shape) - 1;
    double matrix[BANDS_MAX * BANDS_MAX], vector[BANDS_MAX * BANDS_MAX];
    double value[BANDS_MAX], deviation[BANDS_MAX];

    for (uint32_t i = 0; i < last; i++)
        out[i] = (double)NAN;
    out[last] = (double)k->pixels;
    if (k->pixels == 0)
        return;
    find_covariances(k, matrix);
    for (uint32_t b = 0; b < n; b++) {
        deviation[b] = sqrt(fmax(matrix[b * n + b], 0.0));
        out[pb_components_of_band(&k->shape, b)] = pb_exact_mean(&k->sum[b], k->pixels);
        out[pb_components_of_band(&k->shape, b) + 1] = deviation[b];
    }
    if (k->shape.correlation)
        make_correlations(n, deviation, matrix);
    pb_eigen_symmetric(n, matrix, value, vector);
    give_results(k, value, vector, out);
}
