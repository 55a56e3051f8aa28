/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PIXEL_JOIN_H
#define PB_PIXEL_JOIN_H
/* Pixels of several planes that are valid or invalid together, as a mask or an alpha band shows
 * them. Plain data, C11 and C++17. */
#include "kernels/pixel.h"

#include <stdbool.h>
#include <stdint.h>

#define PB_JOIN_PLANES 64 /* planes from the first one on that may decide */

/* Planes without a bit do not decide: they are invalid where the pixel is, and have no fill. */
struct pb_pixel_join {
    uint64_t planes; /* bit p: plane p decides; 0: each plane is valid by itself */
    bool any;        /* a pixel is valid where one of these planes is; false: where all are */
    float fill; /* any: what planes that decide and are invalid have in a valid pixel; NaN: they
                   stay invalid */
};

/* The bits of the first n planes. */
PB_PIXEL uint64_t pb_join_first(uint32_t n)
{
    return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

PB_PIXEL bool pb_join_decides(const struct pb_pixel_join *join, uint32_t plane)
{
    return plane < 64 && (join->planes >> plane & 1) != 0;
}

/* The value of a plane in a pixel that is valid by any plane. */
PB_PIXEL float pb_filled(const struct pb_pixel_join *join, float v, uint32_t plane)
{
    return v != v && pb_join_decides(join, plane) ? join->fill : v;
}
#endif
