/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Extremes of a footprint on the CPU. Where every row of the footprint is centred, rows are joined
 * from the widest to the narrowest: the extremes of what was joined so far are taken of as many
 * columns more as the next row is narrower. A disc of radius r costs about 4 r operations a pixel,
 * a square 2 r and the binary logarithm of r. Of other footprints every pixel is looked at. temp:
 * the padded rows, then the row that is joined. */
#include "kernels/focal/flat_pixel.h"
#include "kernels/focal/focal_job.h"

#include <stdbool.h>

/* Columns from the first to the last of a row of the footprint; n = 0: none. */
struct run {
    int32_t first, n;
};

static struct run run_of(const struct pb_focal *focal, int32_t k)
{
    const int32_t first = (int32_t)focal->weight_x[k], last = (int32_t)focal->weight_y[k];

    return (struct run){first, last < first ? 0 : last - first + 1};
}

/* Columns on each side of the middle; -1 = no pixel. */
static int32_t half_of(const struct pb_focal *focal, int32_t k)
{
    return (run_of(focal, k).n + 1) / 2 - 1;
}

static bool is_centred(const struct pb_focal *focal)
{
    for (int32_t k = 0; k <= 2 * focal->radius; k++) {
        const struct run run = run_of(focal, k);

        if (run.n > 0 && (run.n % 2 == 0 || run.first + run.n / 2 != focal->radius))
            return false;
    }
    return true;
}

size_t pb_focal_flat_temp_px(const struct pb_focal *focal, size_t w)
{
    return pb_focal_window_temp_px(focal, w) + w + 2 * (size_t)focal->radius;
}

void pb_focal_flat_begin(struct pb_focal_job *job)
{
    (void)job;
}

/* -- rows -------------------------------------------------------------------------------------- */

PB_CLONES static void fill(float value, int32_t w, float *row)
{
    for (int32_t x = 0; x < w; x++)
        row[x] = value;
}

/* found[x] joined with row[x]. */
PB_CLONES static void join_row(int32_t choice, const float *row, int32_t w, float *restrict found)
{
    if (choice == PB_FLAT_LEAST)
        for (int32_t x = 0; x < w; x++)
            found[x] = pb_flat_least(row[x], found[x]);
    else
        for (int32_t x = 0; x < w; x++)
            found[x] = pb_flat_greatest(row[x], found[x]);
}

/* row[x] becomes that of row[x] and row[x + shift], in place: what is read lies ahead of what is
 * written, however many are made at a time. */
PB_CLONES static void join_ahead(int32_t choice, int32_t shift, int32_t w, float *row)
{
    if (choice == PB_FLAT_LEAST) {
        PB_INDEPENDENT
        for (int32_t x = 0; x < w; x++)
            row[x] = pb_flat_least(row[x + shift], row[x]);
    } else {
        PB_INDEPENDENT
        for (int32_t x = 0; x < w; x++)
            row[x] = pb_flat_greatest(row[x + shift], row[x]);
    }
}

PB_CLONES static void finish_row(const float *found, int32_t w, float *restrict out)
{
    for (int32_t x = 0; x < w; x++)
        out[x] = pb_pixel_result(found[x] + 0.0f);
}

/* row[x] becomes that of the n pixels from it on; w: afterwards. Twice as many at a time, then what
 * is missing. */
static void widen(int32_t choice, int32_t n, int32_t w, float *row)
{
    int32_t have = 1;

    for (; 2 * have <= n; have *= 2)
        join_ahead(choice, have, w + n - 2 * have, row);
    if (have < n)
        join_ahead(choice, n - have, w, row);
}

/* -- footprints -------------------------------------------------------------------------------- */

/* The half of the widest row narrower than `below`; -1 = there is none. */
static int32_t next_half(const struct pb_focal *focal, int32_t below)
{
    int32_t next = -1;

    for (int32_t k = 0; k <= 2 * focal->radius; k++) {
        const int32_t half = half_of(focal, k);

        next = half < below && half > next ? half : next;
    }
    return next;
}

static void join_centred(const struct pb_focal_job *job, const float *window, int32_t stride,
                         float *found)
{
    const struct pb_focal *const focal = job->focal;
    const int32_t w = job->out->rect.w;
    int32_t half = next_half(focal, focal->radius + 1);

    fill(pb_flat_none(focal->choice), w + 2 * (half < 0 ? 0 : half), found);
    while (half >= 0) {
        const int32_t next = next_half(focal, half), left = next < 0 ? 0 : next;

        for (int32_t k = 0; k < job->side; k++)
            if (half_of(focal, k) == half)
                join_row(focal->choice, window + (size_t)k * (size_t)stride + focal->radius - half,
                         w + 2 * half, found);
        widen(focal->choice, 2 * (half - left) + 1, w + 2 * left, found);
        half = next;
    }
}

static void join_any(const struct pb_focal_job *job, const float *window, int32_t stride,
                     float *found)
{
    const int32_t w = job->out->rect.w;

    fill(pb_flat_none(job->focal->choice), w, found);
    for (int32_t k = 0; k < job->side; k++) {
        const struct run run = run_of(job->focal, k);

        for (int32_t i = 0; i < run.n; i++)
            join_row(job->focal->choice, window + (size_t)k * (size_t)stride + run.first + i, w,
                     found);
    }
}

void pb_focal_flat_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    const size_t w = (size_t)job->out->rect.w;
    float *const found = job->temp + pb_focal_window_temp_px(job->focal, w);
    int32_t stride;
    const float *const window = pb_focal_find_windows(job, rows, &stride);

    if (is_centred(job->focal))
        join_centred(job, window, stride, found);
    else
        join_any(job, window, stride, found);
    finish_row(found, (int32_t)w, out);
}
