/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HALVE_PIXEL_H
#define PB_HALVE_PIXEL_H
/* The mean of the valid of four pixels, for the CPU's loops (pipeline/cog/halve.c) and a device's.
 * Sums in float64: four float32 near the end of their range do not overflow, and the mean is
 * rounded once. Selects instead of branches keep loops vectorised. */
#include "kernels/codec/pixel_join.h"
#include "kernels/pixel.h"

PB_PIXEL float pb_mean4(float a, float b, float c, float d)
{
    double sum = ((double)(a == a ? a : 0.0f) + (double)(b == b ? b : 0.0f)) +
                 ((double)(c == c ? c : 0.0f) + (double)(d == d ? d : 0.0f));
    float n = ((a == a ? 1.0f : 0.0f) + (b == b ? 1.0f : 0.0f)) +
              ((c == c ? 1.0f : 0.0f) + (d == d ? 1.0f : 0.0f));
    return (float)(sum / (double)n); /* 0 / 0 = NaN */
}

/* What a plane of a pixel counts as: its value, the fill, or NaN. at: of plane 0, planes plane_px
 * apart. */
PB_PIXEL float pb_joined(const struct pb_pixel_join *join, const float *at, uint64_t plane_px,
                         uint32_t plane)
{
    const float v = at[plane * plane_px];
    bool all = true, any = false;
    if (join->planes == 0)
        return v;
    for (uint64_t left = join->planes, p = 0; left != 0; left >>= 1, p++) {
        const float x = at[p * plane_px];
        if ((left & 1) != 0) {
            all = all && x == x;
            any = any || x == x;
        }
    }
    return join->any ? any ? pb_filled(join, v, plane) : pb_pixel_nan() : all ? v : pb_pixel_nan();
}
#endif
