/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/cog/halve.h"

#include "kernels/codec/halve_pixel.h"

#include <math.h>

PB_CLONES void pb_halve_average(const float *from, size_t from_row_px, int32_t w, int32_t h,
                                float *to, size_t to_row_px)
{
    int32_t pairs = w / 2;
    for (int32_t y = 0; y < h; y += 2) {
        const float *restrict upper = from + (size_t)y * from_row_px;
        const float *restrict lower = upper + from_row_px;
        float *restrict out = to + (size_t)(y / 2) * to_row_px;
        if (y + 1 == h) {
            for (int32_t i = 0; i < pairs; i++)
                out[i] = pb_mean4(upper[2 * i], upper[2 * i + 1], NAN, NAN);
            if (w % 2)
                out[pairs] = upper[w - 1];
            continue;
        }
        for (int32_t i = 0; i < pairs; i++)
            out[i] = pb_mean4(upper[2 * i], upper[2 * i + 1], lower[2 * i], lower[2 * i + 1]);
        if (w % 2)
            out[pairs] = pb_mean4(upper[w - 1], NAN, lower[w - 1], NAN);
    }
}

void pb_halve_nearest(const float *from, size_t from_row_px, int32_t w, int32_t h, float *to,
                      size_t to_row_px)
{
    int32_t out_w = w / 2 + w % 2;
    for (int32_t y = 0; y < h; y += 2) {
        const float *restrict row = from + (size_t)y * from_row_px;
        float *restrict out = to + (size_t)(y / 2) * to_row_px;
        for (int32_t i = 0; i < out_w; i++)
            out[i] = row[2 * i];
    }
}
