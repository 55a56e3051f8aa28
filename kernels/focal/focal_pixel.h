/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOCAL_PIXEL_H
#define PB_FOCAL_PIXEL_H
/* What the CPU loop and the CUDA kernels of a focal operation share, so that both give the same
 * bits: which pixel stands in for one outside the image, and one step of a weighted sum. A result
 * leaves through pb_pixel_result. A sum starts with focal_first and goes on with focal_next in
 * ascending order of the weights; nothing is contracted to a fused multiply-add. C11 and C++17. */
#include "kernels/pixel.h"
#include "kernels/focal/focal.h"

/* Of pb_focal_index: nothing stands in. */
#define PB_FOCAL_NONE INT32_MIN

/* Image row or column that stands in for index i of n; PB_FOCAL_NONE: the result is invalid; of
 * EXTRAPOLATE i itself, which pb_focal_beyond makes from CLAMP's and REFLECT's. Reflection does not
 * repeat the edge pixel (-1 -> 1, n -> n - 2) and goes back and forth in an image smaller than the
 * radius; an image of one pixel gives that pixel. The index never moves away from the image, so it
 * stays inside the neighbourhood it came from. */
PB_PIXEL int32_t pb_focal_index(int32_t i, int32_t n, enum pb_edge edge)
{
    if (i >= 0 && i < n) {
        return i;
    }
    if (edge == PB_EDGE_NODATA) {
        return PB_FOCAL_NONE;
    }
    if (edge == PB_EDGE_EXTRAPOLATE) {
        return i;
    }
    if (edge == PB_EDGE_CLAMP || n == 1) {
        return i < 0 ? 0 : n - 1;
    }
    while (i < 0 || i >= n) {
        i = i < 0 ? -i : 2 * (n - 1) - i;
    }
    return i;
}

/* The pixel as far outside of the edge pixel as the reflected one is inside. */
PB_PIXEL float pb_focal_beyond(float edge, float reflected)
{
    return (edge + edge) - reflected;
}

PB_PIXEL float pb_focal_first(float weight, float x)
{
    return weight * x;
}

PB_PIXEL float pb_focal_next(float sum, float weight, float x)
{
    return sum + weight * x;
}

/* Whether an invalid neighbour is taken for the pixel in the middle, and what a neighbour is then.
 */
PB_PIXEL bool pb_focal_fills(const struct pb_focal *focal)
{
    return focal->edge == PB_EDGE_EXTRAPOLATE;
}

PB_PIXEL float pb_focal_neighbour(float value, float middle, bool fills)
{
    return fills && value != value ? middle : value;
}

PB_PIXEL float pb_focal_magnitude(float gx, float gy)
{
    return sqrtf(gx * gx + gy * gy);
}
#endif
