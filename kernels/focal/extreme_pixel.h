/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXTREME_PIXEL_H
#define PB_EXTREME_PIXEL_H
/* The least or greatest pixel of a window, or the difference of the two. C11 and C++17. Down the
 * columns, then over them: of +0 and -0 the first one counts. */
#include "kernels/focal/focal.h"
#include "kernels/pixel.h"

/* pb_focal.choice of PB_FOCAL_EXTREME */
enum pb_extreme { PB_EXTREME_LEAST, PB_EXTREME_GREATEST, PB_EXTREME_RANGE };

PB_PIXEL float pb_extreme_of(float least, float greatest, int32_t choice)
{
    return choice == PB_EXTREME_RANGE   ? greatest - least
           : choice == PB_EXTREME_LEAST ? least
                                        : greatest;
}

PB_PIXEL float pb_focal_extreme(const float *window, int32_t stride, int32_t radius,
                                const struct pb_focal *focal)
{
    float least = window[0], greatest = window[0], invalid = 0.0f;

    for (int32_t x = 0; x <= 2 * radius; x++)
        for (int32_t y = 0; y <= 2 * radius; y++) {
            const float v = window[y * stride + x];
            least = v < least ? v : least;
            greatest = v > greatest ? v : greatest;
            invalid += v - v; /* NaN of NaN, else 0 */
        }
    return pb_extreme_of(least, greatest, focal->choice) + invalid;
}
#endif
