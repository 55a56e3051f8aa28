/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GRADIENT_PIXEL_H
#define PB_GRADIENT_PIXEL_H
/* How fast the pixels of a window rise along the columns (x, to the right) or the rows (y, down),
 * in the middle, for each pixel's length, and how fast that changes. C11 and C++17.
 *
 * From the 3 x 3 pixels in the middle: Horn 1981 weighs the differences of three rows by 1, 2, 1;
 * Zevenbergen and Thorne 1987 take that of the row in the middle, and of
 * the second derivatives XX and YY those along the middle, XY that of the corners. Differences come
 * before sums, for those of near values are exact. All pixels of the window have to be valid, or
 * are filled (pb_focal_fills). */
#include "kernels/focal/focal_pixel.h"

/* pb_focal.choice of PB_FOCAL_GRADIENT */
enum pb_gradient {
    PB_GRADIENT_HORN_X,
    PB_GRADIENT_HORN_Y,
    PB_GRADIENT_ZEVENBERGEN_X,
    PB_GRADIENT_ZEVENBERGEN_Y,
    PB_GRADIENT_ZEVENBERGEN_XX,
    PB_GRADIENT_ZEVENBERGEN_YY,
    PB_GRADIENT_ZEVENBERGEN_XY
};

/* From the differences of three pairs, that of the middle second. */
PB_PIXEL float pb_gradient_horn(float first, float middle, float last)
{
    return ((first + last) + (middle + middle)) * 0.125f;
}

/* above, row, below: the left one of three pixels of three rows. */
PB_PIXEL float pb_gradient_of(const float *above, const float *row, const float *below,
                              int32_t choice)
{
    switch (choice) {
    case PB_GRADIENT_HORN_X:
        return pb_gradient_horn(above[2] - above[0], row[2] - row[0], below[2] - below[0]);
    case PB_GRADIENT_HORN_Y:
        return pb_gradient_horn(below[0] - above[0], below[1] - above[1], below[2] - above[2]);
    case PB_GRADIENT_ZEVENBERGEN_X:
        return (row[2] - row[0]) * 0.5f;
    case PB_GRADIENT_ZEVENBERGEN_Y:
        return (below[1] - above[1]) * 0.5f;
    case PB_GRADIENT_ZEVENBERGEN_XX:
        return (row[2] - row[1]) - (row[1] - row[0]);
    case PB_GRADIENT_ZEVENBERGEN_YY:
        return (below[1] - row[1]) - (row[1] - above[1]);
    default:
        return ((below[2] - below[0]) - (above[2] - above[0])) * 0.25f;
    }
}

/* The same with invalid neighbours taken for the pixel in the middle. */
PB_PIXEL float pb_gradient_filled(const float *above, const float *row, const float *below,
                                  int32_t choice)
{
    float filled[9];

    for (int32_t x = 0; x < 3; x++) {
        filled[x] = pb_focal_neighbour(above[x], row[1], true);
        filled[3 + x] = pb_focal_neighbour(row[x], row[1], true);
        filled[6 + x] = pb_focal_neighbour(below[x], row[1], true);
    }
    return pb_gradient_of(filled, filled + 3, filled + 6, choice) + (row[1] - row[1]);
}

PB_PIXEL float pb_focal_gradient(const float *window, int32_t stride, int32_t radius,
                                 const struct pb_focal *focal)
{
    const float *const row = window + radius * stride + radius - 1;
    float invalid = 0.0f;

    if (pb_focal_fills(focal))
        return pb_gradient_filled(row - stride, row, row + stride, focal->choice);

    for (int32_t y = 0; y <= 2 * radius; y++)
        for (int32_t x = 0; x <= 2 * radius; x++)
            invalid += window[y * stride + x] - window[y * stride + x]; /* NaN of NaN, else 0 */
    return pb_gradient_of(row - stride, row, row + stride, focal->choice) + invalid;
}
#endif
