/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MOMENTS_PIXEL_H
#define PB_MOMENTS_PIXEL_H
/* Mean and spread of the pixels of a window. C11 and C++17.
 *
 * Sums of the pixels and of their squares are of float64, in which the square of a float32 is
 * exact: first down each column, then over the columns, so that neighbouring windows share their
 * columns' sums. Nothing is taken out of a running sum, which would make a pixel depend on where a
 * tile begins. The variance is that of the window's pixels (divided by their number) and never
 * below 0. */
#include "kernels/focal/focal.h"
#include "kernels/pixel.h"

/* pb_focal.choice of PB_FOCAL_MOMENTS. VARIATION: standard deviation over mean; invalid where the
 * mean is 0. */
enum pb_moment { PB_MOMENT_MEAN, PB_MOMENT_VARIANCE, PB_MOMENT_DEVIATION, PB_MOMENT_VARIATION };

/* Of n pixels with the sum `first`, their squares with the sum `second`. */
PB_PIXEL float pb_moment_of(double first, double second, double n, int32_t choice)
{
    const double mean = first / n;
    const double spread = (second - first * mean) / n;
    const double variance = spread < 0.0 ? 0.0 : spread; /* NaN stays */
    const double deviation = sqrt(variance);
    const double variation = mean == 0.0 ? (double)pb_pixel_nan() : deviation / mean;
    const double spread_of = choice == PB_MOMENT_VARIANCE    ? variance
                             : choice == PB_MOMENT_DEVIATION ? deviation
                                                             : variation;

    return (float)(choice == PB_MOMENT_MEAN ? mean : spread_of);
}

/* The sums of a window, and of its squares. */
PB_PIXEL void pb_moment_sums(const float *window, int32_t stride, int32_t side, double *out_first,
                             double *out_second)
{
    double first = 0.0, second = 0.0;

    for (int32_t x = 0; x < side; x++) {
        double column = 0.0, squares = 0.0;

        for (int32_t y = 0; y < side; y++) {
            const double v = (double)window[y * stride + x];

            column += v;
            squares += v * v;
        }
        first += column;
        second += squares;
    }
    *out_first = first;
    *out_second = second;
}

PB_PIXEL float pb_focal_moments(const float *window, int32_t stride, int32_t radius,
                                const struct pb_focal *focal)
{
    const int32_t side = 2 * radius + 1;
    double first, second;

    pb_moment_sums(window, stride, side, &first, &second);
    return pb_moment_of(first, second, (double)(side * side), focal->choice);
}
#endif
