/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CURVE_PIXEL_H
#define PB_CURVE_PIXEL_H
/* A curve: straight lines between n knots, x and y in turn, x rising. Below the first knot and
 * above the last one it is level. One text for both devices; + - * / alone, so the same bits. */
#include "kernels/pixel.h"

/* The most knots, one for each sample of 16 bits. */
#define PB_CURVE_KNOTS_MAX 65536

/* What x becomes; invalid when x is, or there is no knot. */
PB_PIXEL float pb_curve_at(const float *knots, int32_t n, float x)
{
    int32_t low = 0, high = n - 1;

    if (x != x || n < 1)
        return pb_pixel_nan();
    if (!(x > knots[0]))
        return knots[1];
    if (x >= knots[2 * high])
        return knots[2 * high + 1];
    while (high - low > 1) { /* knots[low] <= x < knots[high] */
        const int32_t middle = low + (high - low) / 2;

        if (knots[2 * middle] <= x)
            low = middle;
        else
            high = middle;
    }
    const float *const at = knots + 2 * low;
    if (at[0] == x)
        return at[1];
    return at[1] + (at[3] - at[1]) * ((x - at[0]) / (at[2] - at[0]));
}
#endif
