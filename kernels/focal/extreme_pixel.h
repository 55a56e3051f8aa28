/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXTREME_PIXEL_H
#define PB_EXTREME_PIXEL_H
/* The least or greatest pixel of a window, or the difference of the two. C11 and C++17. Down the
 * columns, then over them: of +0 and -0 the first one counts. A neighbour that is filled
 * (pb_focal_fills) leaves both as they are. */
#include "kernels/focal/focal_pixel.h"

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
    const float middle = window[radius * stride + radius];
    const bool fills = pb_focal_fills(focal);
    float least = fills ? FLT_MAX : window[0], greatest = fills ? -FLT_MAX : window[0];
    float invalid = fills ? middle - middle : 0.0f; /* NaN of NaN, else 0 */

    for (int32_t x = 0; x <= 2 * radius; x++)
        for (int32_t y = 0; y <= 2 * radius; y++) {
            const float v = window[y * stride + x]; /* NaN is neither less nor greater */
            least = v < least ? v : least;
            greatest = v > greatest ? v : greatest;
            invalid += fills ? 0.0f : v - v;
        }
    return pb_extreme_of(least, greatest, focal->choice) + invalid;
}
#endif
