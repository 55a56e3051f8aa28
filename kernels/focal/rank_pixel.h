/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RANK_PIXEL_H
#define PB_RANK_PIXEL_H
/* The pixel of a window that has a certain place in ascending order: pb_focal.choice of
 * PB_FOCAL_RANK, 0 the least. A zero is +0. C11 and C++17.
 *
 * Floats in ascending order are whole numbers in ascending order, and those are found from their
 * highest bit down by counting: no pixel is moved, and no branch depends on one. */
#include "kernels/focal/focal.h"
#include "kernels/pixel.h"

/* The float that has this place among all of them, from -NaN to NaN. */
PB_PIXEL float pb_rank_float(uint32_t place)
{
    const uint32_t bits = place & 0x80000000u ? place ^ 0x80000000u : ~place;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

PB_PIXEL float pb_focal_rank(const float *window, int32_t stride, int32_t radius,
                             const struct pb_focal *focal)
{
    const int32_t rank = focal->choice;
    float invalid = 0.0f;
    uint32_t place = 0;

    for (int32_t y = 0; y <= 2 * radius; y++)
        for (int32_t x = 0; x <= 2 * radius; x++)
            invalid += window[y * stride + x] - window[y * stride + x]; /* NaN of NaN, else 0 */
    for (int32_t bit = 31; bit >= 0; bit--) {
        const uint32_t candidate = place | (uint32_t)1 << bit;
        const float limit = pb_rank_float(candidate);
        int32_t below = 0;

        for (int32_t y = 0; y <= 2 * radius; y++)
            for (int32_t x = 0; x <= 2 * radius; x++)
                below += window[y * stride + x] < limit ? 1 : 0;
        place = below <= rank ? candidate : place;
    }
    return pb_rank_float(place) + invalid;
}
#endif
