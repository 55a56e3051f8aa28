/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Relief on the CPU: the terms of one place in all windows of a row are added to their sums, place
 * by place, in loops that the compiler vectorises. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/relief_pixel.h"

#include <string.h>

size_t pb_focal_relief_temp_px(const struct pb_focal *focal, size_t w)
{
    return pb_focal_window_temp_px(focal, w) + w;
}

void pb_focal_relief_begin(struct pb_focal_job *job)
{
    (void)job;
}

/* row: the sums of one row of each window. */
__attribute__((always_inline)) static inline void reliefs(const float *window, int32_t stride,
                                                          int32_t radius, bool fills,
                                                          int32_t choice, int32_t w,
                                                          float *restrict row, float *restrict out)
{
    const int32_t side = 2 * radius + 1;
    const float *const middle = window + (size_t)radius * (size_t)stride + radius;
    const float others = (float)(side * side - 1);

    memset(out, 0, (size_t)w * sizeof *out);
    for (int32_t y = 0; y < side; y++) {
        memset(row, 0, (size_t)w * sizeof *row);
        for (int32_t k = 0; k < side; k++) {
            const float *const value = window + (size_t)y * (size_t)stride + k;

            for (int32_t x = 0; x < w; x++)
                row[x] += pb_relief_term(middle[x], value[x], fills, choice);
        }
        for (int32_t x = 0; x < w; x++)
            out[x] += row[x];
    }
    for (int32_t x = 0; x < w; x++)
        out[x] = pb_pixel_result(pb_relief_of(out[x], others, choice));
}

__attribute__((always_inline)) static inline void
reliefs_of(const float *window, int32_t stride, int32_t radius, bool fills, int32_t choice,
           int32_t w, float *restrict row, float *restrict out)
{
    switch (choice) {
    case PB_RELIEF_POSITION:
        reliefs(window, stride, radius, fills, PB_RELIEF_POSITION, w, row, out);
        break;
    case PB_RELIEF_MEAN:
        reliefs(window, stride, radius, fills, PB_RELIEF_MEAN, w, row, out);
        break;
    default:
        reliefs(window, stride, radius, fills, PB_RELIEF_ROOT, w, row, out);
        break;
    }
}

PB_CLONES static void relief_row(const float *window, int32_t stride, int32_t radius, bool fills,
                                 int32_t choice, int32_t w, float *row, float *out)
{
    if (fills)
        reliefs_of(window, stride, radius, true, choice, w, row, out);
    else
        reliefs_of(window, stride, radius, false, choice, w, row, out);
}

void pb_focal_relief_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    const struct pb_focal *const focal = job->focal;
    const int32_t w = job->out->rect.w;
    float *const row = job->temp + pb_focal_window_temp_px(focal, (size_t)w);
    int32_t stride;
    const float *const window = pb_focal_find_windows(job, rows, &stride);

    relief_row(window, stride, focal->radius, pb_focal_fills(focal), focal->choice, w, row, out);
}
