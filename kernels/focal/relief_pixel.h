/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RELIEF_PIXEL_H
#define PB_RELIEF_PIXEL_H
/* How the pixel in the middle of a window lies to those around it. C11 and C++17.
 *
 * Sums are of differences from the middle, which for near values are exact: of each row, then of
 * the rows. The middle itself adds 0, and NaN where it is invalid; so does a neighbour that is
 * filled (pb_focal_fills). */
#include "kernels/focal/focal_pixel.h"

/* pb_focal.choice of PB_FOCAL_RELIEF. POSITION: the middle less the mean of the others. MEAN: the
 * mean of the absolute differences. ROOT: the root of the sum of their squares. */
enum pb_relief { PB_RELIEF_POSITION, PB_RELIEF_MEAN, PB_RELIEF_ROOT };

PB_PIXEL float pb_relief_term(float middle, float value, bool fills, int32_t choice)
{
    const float off = middle - pb_focal_neighbour(value, middle, fills);

    return choice == PB_RELIEF_POSITION ? off : choice == PB_RELIEF_MEAN ? fabsf(off) : off * off;
}

/* From the sum of the terms of `others` pixels and the middle. */
PB_PIXEL float pb_relief_of(float sum, float others, int32_t choice)
{
    return choice == PB_RELIEF_ROOT ? sqrtf(sum) : sum / others;
}

PB_PIXEL float pb_focal_relief(const float *window, int32_t stride, int32_t radius,
                               const struct pb_focal *focal)
{
    const int32_t side = 2 * radius + 1;
    const float middle = window[radius * stride + radius];
    const bool fills = pb_focal_fills(focal);
    float sum = 0.0f;

    for (int32_t y = 0; y < side; y++) {
        float row = 0.0f;

        for (int32_t x = 0; x < side; x++)
            row += pb_relief_term(middle, window[y * stride + x], fills, focal->choice);
        sum += row;
    }
    return pb_relief_of(sum, (float)(side * side - 1), focal->choice);
}
#endif
