/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Sums in float64: four float32 near the end of their range do not overflow, and the mean is
 * rounded once. Selects instead of branches keep the inner loop vectorised. */
#include "pipeline/cog/halve.h"

#include "kernels/pixel.h"

#include <math.h>

static inline float mean4(float a, float b, float c, float d)
{
    double sum = ((double)(a == a ? a : 0.0f) + (double)(b == b ? b : 0.0f)) +
                 ((double)(c == c ? c : 0.0f) + (double)(d == d ? d : 0.0f));
    float n = ((a == a ? 1.0f : 0.0f) + (b == b ? 1.0f : 0.0f)) +
              ((c == c ? 1.0f : 0.0f) + (d == d ? 1.0f : 0.0f));
    return (float)(sum / (double)n); /* 0 / 0 = NaN */
}

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
                out[i] = mean4(upper[2 * i], upper[2 * i + 1], NAN, NAN);
            if (w % 2)
                out[pairs] = upper[w - 1];
            continue;
        }
        for (int32_t i = 0; i < pairs; i++)
            out[i] = mean4(upper[2 * i], upper[2 * i + 1], lower[2 * i], lower[2 * i + 1]);
        if (w % 2)
            out[pairs] = mean4(upper[w - 1], NAN, lower[w - 1], NAN);
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
