/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stencils on the CPU. Everything is one loop, weighted_sum: out[x] = sum of weight[k] * tap[k][x],
 * unrolled over k and vectorised over x. The taps of a row sum are one row at 2 * radius + 1
 * offsets, those of a column sum are 2 * radius + 1 rows. Pixels outside the image never meet that
 * loop: a row that reaches over the left or right edge is copied once into a padded row, a row
 * above or below is another row's pointer. Rows already filtered along x are kept in a ring of as
 * many rows as the stencil is high, which stays in the first-level cache for usual tiles. */
#include "kernels/focal/stencil.h"
#include "kernels/focal/stencil_pixel.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* Rows filtered along x, the newest 2 * radius + 1 of them: image row y is at y % side. */
struct ring {
    float *rows; /* side rows of out->rect.w */
    const float *weight;
    int32_t held[PB_STENCIL_SIDE_MAX]; /* which image row is there, -1 = none */
};

struct job {
    const struct pb_stencil *stencil;
    const struct pb_plane *in, *out;
    int32_t image_w, image_h, side;
    struct ring ring[2];
    float *padded; /* SEPARABLE, GRADIENT: one row; FULL: side rows; of out->rect.w + 2 * radius */
    float *other;  /* GRADIENT: one row of the second component */
};

__attribute__((always_inline)) static inline void
sum_of(int32_t n, const float *const *tap, const float *weight, int32_t w, float *restrict out)
{
    /* NOLINTBEGIN(clang-analyzer-core.NullDereference): every caller fills the n taps */
    for (int32_t x = 0; x < w; x++) {
        float sum = pb_stencil_first(weight[0], tap[0][x]);
#pragma GCC unroll 16
        for (int32_t k = 1; k < n; k++) {
            sum = pb_stencil_next(sum, weight[k], tap[k][x]);
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
            sum = pb_stencil_next(sum, weight[k], tap[k][x]);
        }
        out[x] = sum;
    }
}

/* Each side has a loop of its own: the compiler unrolls what it knows. */
#define FOR_EACH_SIDE(body)                                                                        \
    switch (side) {                                                                                \
    case 3:                                                                                        \
        body(3, tap, weight, w, out);                                                              \
        break;                                                                                     \
    case 5:                                                                                        \
        body(5, tap, weight, w, out);                                                              \
        break;                                                                                     \
    case 7:                                                                                        \
        body(7, tap, weight, w, out);                                                              \
        break;                                                                                     \
    case 9:                                                                                        \
        body(9, tap, weight, w, out);                                                              \
        break;                                                                                     \
    case 11:                                                                                       \
        body(11, tap, weight, w, out);                                                             \
        break;                                                                                     \
    case 13:                                                                                       \
        body(13, tap, weight, w, out);                                                             \
        break;                                                                                     \
    default:                                                                                       \
        body(15, tap, weight, w, out);                                                             \
        break;                                                                                     \
    }

PB_CLONES static void weighted_sum(int32_t side, const float *const *tap, const float *weight,
                                   int32_t w, float *restrict out){FOR_EACH_SIDE(sum_of)}

/* Goes on with the sums that are in out. */
PB_CLONES static void weighted_add(int32_t side, const float *const *tap, const float *weight,
                                   int32_t w, float *restrict out){FOR_EACH_SIDE(add_of)}

PB_CLONES static void finish_row(int32_t w, float *restrict out)
{
    for (int32_t x = 0; x < w; x++) {
        out[x] = pb_pixel_result(out[x]);
    }
}

PB_CLONES static void magnitude_row(int32_t w, const float *restrict gy, float *restrict out)
{
    for (int32_t x = 0; x < w; x++) {
        out[x] = pb_pixel_result(pb_stencil_magnitude(out[x], gy[x]));
    }
}

/* Image row y from column out.x - radius to out.x + out.w + radius: in place where the image has
 * all of it, else a copy in `padded`. */
static const float *source_row(const struct job *job, int32_t y, float *padded)
{
    const struct pb_rect *in = &job->in->rect;
    const float *row = job->in->data + (size_t)(y - in->y) * (size_t)in->w;
    int32_t left = job->out->rect.x - job->stencil->radius;
    int32_t right = job->out->rect.x + job->out->rect.w + job->stencil->radius;
    if (left >= 0 && right <= job->image_w) {
        return row + (left - in->x);
    }
    int32_t from = left > 0 ? left : 0;
    int32_t to = right < job->image_w ? right : job->image_w;
    memcpy(padded + (from - left), row + (from - in->x), (size_t)(to - from) * sizeof(float));
    for (int32_t x = left; x < right; x++) {
        if (x == from) {
            x = to;
            if (x >= right) {
                break;
            }
        }
        int32_t column = pb_stencil_index(x, job->image_w, job->stencil->edge);
        padded[x - left] = column < 0 ? pb_pixel_nan() : row[column - in->x];
    }
    return padded;
}

/* Image row y filtered along x. */
static const float *filtered_row(const struct job *job, struct ring *ring, int32_t y)
{
    int32_t slot = y % job->side;
    float *row = ring->rows + (size_t)slot * (size_t)job->out->rect.w;
    if (ring->held[slot] != y) {
        const float *tap[PB_STENCIL_SIDE_MAX];
        const float *source = source_row(job, y, job->padded);
        for (int32_t k = 0; k < job->side; k++) {
            tap[k] = source + k;
        }
        weighted_sum(job->side, tap, ring->weight, job->out->rect.w, row);
        ring->held[slot] = y;
    }
    return row;
}

static void fill_invalid(const struct job *job, float *out)
{
    for (int32_t x = 0; x < job->out->rect.w; x++) {
        out[x] = pb_pixel_nan();
    }
}

/* The image rows that output row y needs; false when one is outside and counts as invalid. */
static bool rows_around(const struct job *job, int32_t y, int32_t rows[PB_STENCIL_SIDE_MAX])
{
    for (int32_t k = 0; k < job->side; k++) {
        rows[k] = pb_stencil_index(y + k - job->stencil->radius, job->image_h, job->stencil->edge);
        if (rows[k] < 0) {
            return false;
        }
    }
    return true;
}

static void columns_of_rows(const struct job *job, struct ring *ring, const int32_t *rows,
                            const float *weight, float *out)
{
    const float *tap[PB_STENCIL_SIDE_MAX];
    for (int32_t k = 0; k < job->side; k++) {
        tap[k] = filtered_row(job, ring, rows[k]);
    }
    weighted_sum(job->side, tap, weight, job->out->rect.w, out);
}

static void separable_row(struct job *job, const int32_t *rows, float *out)
{
    columns_of_rows(job, &job->ring[0], rows, job->stencil->weight_y, out);
    finish_row(job->out->rect.w, out);
}

static void gradient_row(struct job *job, const int32_t *rows, float *out)
{
    columns_of_rows(job, &job->ring[0], rows, job->stencil->weight_y, out);
    columns_of_rows(job, &job->ring[1], rows, job->stencil->weight_x, job->other);
    magnitude_row(job->out->rect.w, job->other, out);
}

static void full_row(struct job *job, const int32_t *rows, float *out)
{
    int32_t w = job->out->rect.w;
    size_t stride = (size_t)w + 2 * (size_t)job->stencil->radius;
    for (int32_t k = 0; k < job->side; k++) {
        /* A padded row stays where it was made until the stencil has passed it. */
        int32_t slot = rows[k] % job->side;
        float *padded = job->padded + (size_t)slot * stride;
        const float *source =
            job->ring[0].held[slot] == rows[k] ? padded : source_row(job, rows[k], padded);
        job->ring[0].held[slot] = source == padded ? rows[k] : -1;
        const float *tap[PB_STENCIL_SIDE_MAX];
        for (int32_t i = 0; i < job->side; i++) {
            tap[i] = source + i;
        }
        const float *weight = job->stencil->weight + (size_t)k * (size_t)job->side;
        if (k == 0) {
            weighted_sum(job->side, tap, weight, w, out);
        } else {
            weighted_add(job->side, tap, weight, w, out);
        }
    }
    finish_row(w, out);
}

/* Floats of the padded rows and of the rings: what temp holds, in this order. */
static size_t padded_px(const struct pb_stencil *stencil, size_t w)
{
    size_t side = 2 * (size_t)stencil->radius + 1;
    return (stencil->kind == PB_STENCIL_FULL ? side : 1) * (w + side - 1);
}

static size_t ring_px(const struct pb_stencil *stencil, size_t w)
{
    return (2 * (size_t)stencil->radius + 1) * w;
}

size_t pb_stencil_temp_px(const struct pb_stencil *stencil, const struct pb_rect *out_rect)
{
    size_t w = (size_t)out_rect->w;
    size_t px = padded_px(stencil, w);
    if (stencil->kind == PB_STENCIL_SEPARABLE) {
        px += ring_px(stencil, w);
    } else if (stencil->kind == PB_STENCIL_GRADIENT) {
        px += 2 * ring_px(stencil, w) + w;
    }
    return px;
}

void pb_stencil_run_cpu(const struct pb_stencil *stencil, const struct pb_plane *in,
                        const struct pb_plane *out, int32_t image_w, int32_t image_h, float *temp)
{
    static void (*const row_of[])(struct job *, const int32_t *, float *) = {
        [PB_STENCIL_SEPARABLE] = separable_row,
        [PB_STENCIL_FULL] = full_row,
        [PB_STENCIL_GRADIENT] = gradient_row,
    };
    size_t w = (size_t)out->rect.w;
    float *rings = temp + padded_px(stencil, w);
    struct job job = {
        .stencil = stencil,
        .in = in,
        .out = out,
        .image_w = image_w,
        .image_h = image_h,
        .side = 2 * stencil->radius + 1,
        .padded = temp,
        .ring = {{.rows = rings, .weight = stencil->weight_x},
                 {.rows = rings + ring_px(stencil, w), .weight = stencil->weight_y}},
        .other = rings + 2 * ring_px(stencil, w),
    };
    assert(stencil->radius >= 1 && job.side <= PB_STENCIL_SIDE_MAX);
    memset(job.ring[0].held, 0xff, sizeof job.ring[0].held);
    memset(job.ring[1].held, 0xff, sizeof job.ring[1].held);
    int32_t rows[PB_STENCIL_SIDE_MAX];
    for (int32_t i = 0; i < out->rect.h; i++) {
        float *row = out->data + (size_t)i * w;
        if (rows_around(&job, out->rect.y + i, rows)) {
            row_of[stencil->kind](&job, rows, row);
        } else {
            fill_invalid(&job, row);
        }
    }
}

size_t pb_stencil_patch_bytes(const struct pb_stencil *stencil)
{
    const int32_t side = PB_STENCIL_PATCH + 2 * stencil->radius;
    const int32_t bands = stencil->kind == PB_STENCIL_FULL       ? 0
                          : stencil->kind == PB_STENCIL_GRADIENT ? 2
                                                                 : 1;

    if (stencil->radius < 1 || 2 * stencil->radius + 1 > PB_STENCIL_SIDE_MAX)
        return 0;
    return (size_t)(side * (side + bands * PB_STENCIL_PATCH)) * sizeof(float);
}
