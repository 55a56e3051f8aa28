/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Weighted sums on the CPU. Everything is one loop, weighted_sum: out[x] = sum of weight[k] *
 * tap[k][x], unrolled over k and vectorised over x. The taps of a row sum are one row at side
 * offsets, those of a column sum are side rows. Rows already filtered along x are kept in a ring of
 * `side` rows, which stays in the first-level cache for usual tiles. temp: the padded rows, then
 * the rings, then a row of the second component of a magnitude. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/focal_pixel.h"

#include <string.h>

#define LOOP_MAX 15 /* of PB_FOCAL_EACH_SIDE */

__attribute__((always_inline)) static inline void
sum_of(int32_t n, const float *const *tap, const float *weight, int32_t w, float *restrict out)
{
    /* NOLINTBEGIN(clang-analyzer-core.NullDereference): every caller fills the n taps */
    for (int32_t x = 0; x < w; x++) {
        float sum = pb_focal_first(weight[0], tap[0][x]);
#pragma GCC unroll 16
        for (int32_t k = 1; k < n; k++) {
            sum = pb_focal_next(sum, weight[k], tap[k][x]);
        }
        out[x] = sum;
    }
    /* NOLINTEND(clang-analyzer-core.NullDereference) */
}

__attribute__((always_inline)) static inline void
add_of(int32_t n, const float *const *tap, const float *weight, int32_t w, float *restrict out)
{
    for (int32_t x = 0; x < w; x++) {
        float sum = out[x];
#pragma GCC unroll 16
        for (int32_t k = 0; k < n; k++) {
            sum = pb_focal_next(sum, weight[k], tap[k][x]);
        }
        out[x] = sum;
    }
}

PB_CLONES static void sum_of_few(int32_t n, const float *const *tap, const float *weight, int32_t w,
                                 float *restrict out)
{
    PB_FOCAL_EACH_SIDE(n, sum_of, tap, weight, w, out);
}

PB_CLONES static void add_few(int32_t n, const float *const *tap, const float *weight, int32_t w,
                              float *restrict out)
{
    PB_FOCAL_EACH_SIDE(n, add_of, tap, weight, w, out);
}

/* goes_on: with the sums that are in out. More taps than there are loops for are three odd numbers
 * of them, one after the other. */
static void weighted_sum(int32_t side, const float *const *tap, const float *weight, bool goes_on,
                         int32_t w, float *restrict out)
{
    const int32_t first = side > LOOP_MAX ? side / 3 | 1 : side;
    const int32_t second = (side - first) / 2 | 1, third = side - first - second;

    (goes_on ? add_few : sum_of_few)(first, tap, weight, w, out);
    if (first < side) {
        add_few(second, tap + first, weight + first, w, out);
        add_few(third, tap + first + second, weight + first + second, w, out);
    }
}

PB_CLONES static void finish_row(int32_t w, float *restrict out)
{
    for (int32_t x = 0; x < w; x++) {
        out[x] = pb_pixel_result(out[x]);
    }
}

PB_CLONES static void magnitude_row(int32_t w, const float *restrict gy, float *restrict out)
{
    for (int32_t x = 0; x < w; x++) {
        out[x] = pb_pixel_result(pb_focal_magnitude(out[x], gy[x]));
    }
}

/* Floats of the padded rows and of the rings: what temp holds, in this order. */
static size_t padded_px(const struct pb_focal *focal, size_t w)
{
    size_t side = 2 * (size_t)focal->radius + 1;
    return (focal->kind == PB_FOCAL_FULL ? side : 1) * (w + side - 1);
}

static size_t ring_px(const struct pb_focal *focal, size_t w)
{
    return (2 * (size_t)focal->radius + 1) * w;
}

/* Image row y filtered along x. */
static const float *filtered_row(const struct pb_focal_job *job, struct pb_focal_ring *ring,
                                 int32_t y)
{
    int32_t slot = y % job->side;
    float *row = ring->rows + (size_t)slot * (size_t)job->out->rect.w;
    if (ring->held[slot] != y) {
        const float *tap[PB_FOCAL_SIDE_MAX];
        const float *source = pb_focal_source_row(job, y, job->temp);
        for (int32_t k = 0; k < job->side; k++) {
            tap[k] = source + k;
        }
        weighted_sum(job->side, tap, ring->weight, false, job->out->rect.w, row);
        ring->held[slot] = y;
    }
    return row;
}

static void columns_of_rows(const struct pb_focal_job *job, struct pb_focal_ring *ring,
                            const int32_t *rows, const float *weight, float *out)
{
    const float *tap[PB_FOCAL_SIDE_MAX];
    for (int32_t k = 0; k < job->side; k++) {
        tap[k] = filtered_row(job, ring, rows[k]);
    }
    weighted_sum(job->side, tap, weight, false, job->out->rect.w, out);
}

void pb_focal_separable_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    columns_of_rows(job, &job->ring[0], rows, job->focal->weight_y, out);
    finish_row(job->out->rect.w, out);
}

void pb_focal_magnitude_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    columns_of_rows(job, &job->ring[0], rows, job->focal->weight_y, out);
    float *other = job->ring[1].rows + ring_px(job->focal, (size_t)job->out->rect.w);
    columns_of_rows(job, &job->ring[1], rows, job->focal->weight_x, other);
    magnitude_row(job->out->rect.w, other, out);
}

void pb_focal_full_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    int32_t w = job->out->rect.w;
    size_t stride = (size_t)w + 2 * (size_t)job->focal->radius;
    for (int32_t k = 0; k < job->side; k++) {
        /* A padded row stays where it was made until the focal operation has passed it. */
        int32_t slot = rows[k] % job->side;
        float *padded = job->temp + (size_t)slot * stride;
        const float *source =
            job->ring[0].held[slot] == rows[k] ? padded : pb_focal_source_row(job, rows[k], padded);
        job->ring[0].held[slot] = source == padded ? rows[k] : -1;
        const float *tap[PB_FOCAL_SIDE_MAX];
        for (int32_t i = 0; i < job->side; i++) {
            tap[i] = source + i;
        }
        const float *weight = job->focal->weight + (size_t)k * (size_t)job->side;
        weighted_sum(job->side, tap, weight, k > 0, w, out);
    }
    finish_row(w, out);
}

size_t pb_focal_sum_temp_px(const struct pb_focal *focal, size_t w)
{
    size_t px = padded_px(focal, w);
    if (focal->kind == PB_FOCAL_SEPARABLE) {
        px += ring_px(focal, w);
    } else if (focal->kind == PB_FOCAL_MAGNITUDE) {
        px += 2 * ring_px(focal, w) + w;
    }
    return px;
}

void pb_focal_sum_begin(struct pb_focal_job *job)
{
    size_t w = (size_t)job->out->rect.w;
    for (int i = 0; i < 2; i++) {
        job->ring[i].rows =
            job->temp + padded_px(job->focal, w) + (size_t)i * ring_px(job->focal, w);
        job->ring[i].weight = i == 0 ? job->focal->weight_x : job->focal->weight_y;
        memset(job->ring[i].held, 0xff, sizeof job->ring[i].held);
    }
}
