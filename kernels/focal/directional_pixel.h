/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DIRECTIONAL_PIXEL_H
#define PB_DIRECTIONAL_PIXEL_H
/* Mean or variance of that half of a window which lies on the pixel's side of an edge. C11 and
 * C++17.
 *
 * Lee 1981: nine square areas in the window, side 2 * (radius / 2) + 1, as far out as they can be,
 * have sums; of the four pairs of opposite areas the one that differs most shows across what line
 * the edge runs, and of its two areas the one nearer to that in the middle on which side of it the
 * pixel lies. The half has all pixels of that side, those of the line through the middle too. The
 * first of equal pairs and the second of equally near areas count.
 *
 * Sums are of float64: of areas down each column and then over the columns, so that windows beside
 * each other share them; of halves row by row. */
#include "kernels/focal/focal.h"
#include "kernels/focal/moments_pixel.h"
#include "kernels/pixel.h"

/* Where the first area of a pair lies, seen from the middle; the second one lies opposite. */
#define PB_DIRECTIONAL_X(pair) ((pair) == 0 ? -1 : (pair) == 1 ? 1 : (pair) == 2 ? 0 : -1)
#define PB_DIRECTIONAL_Y(pair) ((pair) == 0 ? 0 : -1)

/* Of areas: pixels from the middle to the side, and from the window's middle to theirs. */
PB_PIXEL int32_t pb_directional_reach(int32_t radius)
{
    return radius / 2;
}
PB_PIXEL int32_t pb_directional_step(int32_t radius)
{
    return radius - radius / 2;
}

/* What is known after some of the pairs. */
struct pb_directional {
    double most;
    int32_t x, y; /* towards the pixel's half */
};

/* One more pair, whose areas have the sums first and second, that in the middle `middle`. */
PB_PIXEL void pb_directional_next(struct pb_directional *best, int32_t pair, double first,
                                  double second, double middle)
{
    const double differ = fabs(first - second);
    const bool is_first = fabs(first - middle) < fabs(middle - second);
    const bool is_best = differ > best->most;
    const int32_t x = is_first ? PB_DIRECTIONAL_X(pair) : -PB_DIRECTIONAL_X(pair);
    const int32_t y = is_first ? PB_DIRECTIONAL_Y(pair) : -PB_DIRECTIONAL_Y(pair);
    best->most = is_best ? differ : best->most;
    best->x = is_best ? x : best->x;
    best->y = is_best ? y : best->y;
}

/* The sum of an area whose upper left pixel is *from. */
PB_PIXEL double pb_directional_area(const float *from, int32_t stride, int32_t side)
{
    double sum = 0.0;
    for (int32_t x = 0; x < side; x++) {
        double column = 0.0;
        for (int32_t y = 0; y < side; y++)
            column += (double)from[y * stride + x];
        sum += column;
    }
    return sum;
}

/* pb_focal.choice of PB_FOCAL_DIRECTIONAL: an enum pb_moment. */
PB_PIXEL float pb_focal_directional(const float *window, int32_t stride, int32_t radius,
                                    const struct pb_focal *focal)
{
    const int32_t side = 2 * radius + 1, area = 2 * pb_directional_reach(radius) + 1;
    const int32_t step = pb_directional_step(radius);
    const float *const middle = window + step * stride + step; /* its area's corner */
    const double centre = pb_directional_area(middle, stride, area);
    struct pb_directional best = {-1.0, -1, 0};
    double first = 0.0, second = 0.0;
    float invalid = 0.0f;

    for (int32_t pair = 0; pair < 4; pair++) {
        const int32_t to = (PB_DIRECTIONAL_Y(pair) * stride + PB_DIRECTIONAL_X(pair)) * step;
        pb_directional_next(&best, pair, pb_directional_area(middle + to, stride, area),
                            pb_directional_area(middle - to, stride, area), centre);
    }
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) {
            const float value = window[y * stride + x];
            const bool is_in = best.x * (x - radius) + best.y * (y - radius) >= 0;
            const double v = is_in ? (double)value : 0.0;

            first += v;
            second += v * v;
            invalid += value - value; /* NaN of NaN, else 0 */
        }
    return pb_moment_of(first, second, (double)(side * (radius + 1)), focal->choice) + invalid;
}
#endif
