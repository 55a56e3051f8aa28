/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Extremes on the CPU: those of each column of the row of windows once, then those of `side`
 * columns. temp: the padded rows, then three rows: least, greatest, and NaN where one is. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/extreme_pixel.h"

#include <string.h>

static size_t columns_of(const struct pb_focal *focal, size_t w)
{
    return w + 2 * (size_t)focal->radius;
}

size_t pb_focal_extreme_temp_px(const struct pb_focal *focal, size_t w)
{
    return pb_focal_window_temp_px(focal, w) + 3 * columns_of(focal, w);
}

void pb_focal_extreme_begin(struct pb_focal_job *job)
{
    (void)job;
}

/* Of the rows from `first` on, joined with what is there. */
PB_CLONES static void join_columns(const float *window, int32_t stride, int32_t first, int32_t side,
                                   int32_t w, float *restrict least, float *restrict greatest,
                                   float *restrict invalid)
{
    for (int32_t y = first; y < side; y++) {
        const float *const row = window + (size_t)y * (size_t)stride;

        for (int32_t x = 0; x < w; x++) {
            least[x] = row[x] < least[x] ? row[x] : least[x];
            greatest[x] = row[x] > greatest[x] ? row[x] : greatest[x];
            invalid[x] += row[x] - row[x];
        }
    }
}

static void find_columns(const float *window, int32_t stride, int32_t side, int32_t w,
                         float *restrict least, float *restrict greatest, float *restrict invalid)
{
    for (int32_t x = 0; x < w; x++) {
        least[x] = greatest[x] = window[x];
        invalid[x] = window[x] - window[x];
    }
    join_columns(window, stride, 1, side, w, least, greatest, invalid);
}

/* The same of windows that are filled: NaN is neither less nor greater, and makes nothing invalid
 * but in the middle of a window (drop_invalid). */
static void find_filled_columns(const float *window, int32_t stride, int32_t side, int32_t w,
                                float *restrict least, float *restrict greatest,
                                float *restrict invalid)
{
    for (int32_t x = 0; x < w; x++) {
        least[x] = FLT_MAX;
        greatest[x] = -FLT_MAX;
        invalid[x] = 0.0f;
    }
    join_columns(window, stride, 0, side, w, least, greatest, invalid);
    memset(invalid, 0, (size_t)w * sizeof *invalid);
}

PB_CLONES static void drop_invalid(const float *middle, int32_t w, float *restrict out)
{
    for (int32_t x = 0; x < w; x++)
        out[x] = pb_pixel_result(out[x] + (middle[x] - middle[x]));
}

__attribute__((always_inline)) static inline void extremes_of(int32_t side, const float *least,
                                                              const float *greatest,
                                                              const float *invalid, int32_t choice,
                                                              int32_t w, float *restrict out)
{
    for (int32_t x = 0; x < w; x++) {
        float low = least[x], high = greatest[x], none = invalid[x];

#pragma GCC unroll 16
        for (int32_t k = 1; k < side; k++) {
            low = least[x + k] < low ? least[x + k] : low;
            high = greatest[x + k] > high ? greatest[x + k] : high;
            none += invalid[x + k];
        }
        out[x] = pb_pixel_result(pb_extreme_of(low, high, choice) + none);
    }
}

PB_CLONES static void finish_row(int32_t side, const float *least, const float *greatest,
                                 const float *invalid, int32_t choice, int32_t w,
                                 float *restrict out)
{
    PB_FOCAL_EACH_SIDE(side, extremes_of, least, greatest, invalid, choice, w, out);
}

void pb_focal_extreme_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    const size_t w = (size_t)job->out->rect.w, n = columns_of(job->focal, w);
    float *const least = job->temp + pb_focal_window_temp_px(job->focal, w);
    const int32_t radius = job->focal->radius;
    const bool fills = pb_focal_fills(job->focal);
    int32_t stride;
    const float *const window = pb_focal_find_windows(job, rows, &stride);

    (fills ? find_filled_columns : find_columns)(window, stride, job->side, (int32_t)n, least,
                                                 least + n, least + 2 * n);
    finish_row(job->side, least, least + n, least + 2 * n, job->focal->choice, (int32_t)w, out);
    if (fills)
        drop_invalid(window + (size_t)radius * (size_t)stride + radius, (int32_t)w, out);
}
