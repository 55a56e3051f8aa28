/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FLAT_PIXEL_H
#define PB_FLAT_PIXEL_H
/* The least or greatest of the valid pixels of a footprint: erosion and dilation with a flat
 * structuring element. Row k of the footprint, 0 to 2 * radius, goes from column weight_x[k] to
 * weight_y[k] of pb_focal, whole numbers; it has no pixel where the first is behind the last.
 * Invalid pixels are left out, and so is what lies outside the image with PB_EDGE_NODATA; the
 * result is invalid where no pixel is left. A zero is +0. C11 and C++17. */
#include "kernels/focal/focal.h"
#include "kernels/pixel.h"

/* pb_focal.choice of PB_FOCAL_FLAT */
enum pb_flat { PB_FLAT_LEAST, PB_FLAT_GREATEST };

/* Of no pixel. It leaves pb_pixel_result as invalid. */
PB_PIXEL float pb_flat_none(int32_t choice)
{
    return choice == PB_FLAT_LEAST ? HUGE_VALF : -HUGE_VALF;
}

/* v and what was found of other pixels, which is no NaN; v may be one. */
PB_PIXEL float pb_flat_least(float v, float found)
{
    return v < found ? v : found;
}
PB_PIXEL float pb_flat_greatest(float v, float found)
{
    return v > found ? v : found;
}

PB_PIXEL float pb_focal_flat(const float *window, int32_t stride, int32_t radius,
                             const struct pb_focal *focal)
{
    float found = pb_flat_none(focal->choice);

    for (int32_t y = 0; y <= 2 * radius; y++) {
        const int32_t last = (int32_t)focal->weight_y[y];

        for (int32_t x = (int32_t)focal->weight_x[y]; x <= last; x++) {
            const float v = window[y * stride + x];
            found = focal->choice == PB_FLAT_LEAST ? pb_flat_least(v, found)
                                                   : pb_flat_greatest(v, found);
        }
    }
    return found + 0.0f; /* -0 becomes +0: which zero is met first must not matter */
}
#endif
