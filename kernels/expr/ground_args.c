/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The length is a function of y alone, and y of column and row. A polynomial of y has the same bits
 * on every device, whatever the tile; of degrees that of the length itself, which is smooth up to
 * the poles, of Mercator's projection that of its reciprocal, which is smooth everywhere. Degrees
 * of longitude vanish at the poles: near one the polynomial leaves out two factors, the distances
 * from both, which are made from the pixel's column and row, so that a short length is as precise
 * as a long one. */
#include "kernels/expr/ground_args.h"

#include "kernels/expr/series.h"
#include "kernels/pixel.h"

#include <math.h>
#include <string.h>

#define TOLERANCE 1e-8 /* well below what float32 keeps */
#define NEAR_POLE 0.1  /* lengths as a share of that at the equator */
#define AT_POLE   1e-6 /* 6 m from it */

const struct pb_ground_unit *pb_ground_args_unit(const struct pb_builder *b, int32_t grid)
{
    const struct pb_ground *const ground = pb_builder_ground(b, pb_builder_geometry(b, grid).frame);

    return ground != NULL ? &ground->unit : &pb_builder_scene(b)->unit;
}

/* A grid's y, and how long a unit of `axis` is there: y = middle + half * u, u from -1 to 1. */
struct law {
    const struct pb_ground_unit *unit;
    double transform[6], middle, half;
    int32_t grid;
    int axis;
    bool by_poles; /* the polynomial is that of what is left without the distances from the poles */
};

static double pole_of(const struct law *law)
{
    return M_PI_2 / law->unit->radians;
}

/* The length as a share of that of a unit of latitude at the equator of a sphere. */
static double share_at(const struct law *law, double u)
{
    double metres[2];

    pb_ground_metres(law->unit, law->middle + law->half * u, metres);
    return metres[law->axis] / (law->unit->axis * law->unit->radians);
}

/* What the polynomial is of. */
static double smooth_at(const void *of, double u)
{
    const struct law *const law = of;
    const double away = (law->middle + law->half * u) / pole_of(law);

    if (law->unit->law == PB_GROUND_MERCATOR)
        return 1.0 / share_at(law, u);
    if (!law->by_poles)
        return share_at(law, u);
    if (fabs(1.0 - away * away) < 1e-9) /* both are 0 there, but what is between them is smooth */
        return smooth_at(law, u > 0 ? u - 1e-6 : u + 1e-6);
    return share_at(law, u) / (1.0 - away * away);
}

static struct law law_of(const struct pb_builder *b, int32_t grid, const double transform[6],
                         int axis)
{
    const struct pb_geometry g = pb_builder_geometry(b, grid);
    const double *const t = transform;
    struct law law = {.unit = pb_ground_args_unit(b, grid),
                      .middle = t[3] + g.w / 2.0 * t[4] + g.h / 2.0 * t[5],
                      .half = (fabs(t[4]) * g.w + fabs(t[5]) * g.h) / 2,
                      .grid = grid,
                      .axis = axis};

    memcpy(law.transform, t, sizeof law.transform);
    law.by_poles = law.unit->law == PB_GROUND_LATITUDE && axis == 0 &&
                   fmin(share_at(&law, -1), share_at(&law, 1)) < NEAR_POLE;
    return law;
}

static pb_value number(struct pb_builder *b, double value)
{
    return pb_builder_constant(b, (float)value);
}

static pb_value times(struct pb_builder *b, pb_value x, pb_value y)
{
    return pb_builder_emit(b, PB_VM_MUL, x, y, -1);
}

/* (y - from) * scale at each pixel's centre. The numbers of pixels are taken off each other first,
 * which is exact where y is near `from`. */
static pb_value place_of(struct pb_builder *b, const struct law *law, double from, double scale)
{
    const double *const t = law->transform;
    const uint32_t main = fabs(t[5]) >= fabs(t[4]);
    const double step = t[4 + main], other = t[5 - main] / step;
    const double start = (from - t[3]) / step - 0.5 - 0.5 * other;
    pb_value pixels =
        pb_builder_emit(b, PB_VM_SUB, pb_builder_index(b, main, law->grid), number(b, start), -1);

    if (other != 0)
        pixels = pb_builder_emit(
            b, PB_VM_ADD, pixels,
            times(b, pb_builder_index(b, 1 - main, law->grid), number(b, other)), -1);
    return times(b, pixels, number(b, step * scale));
}

static pb_value polynomial(struct pb_builder *b, pb_value u, const double *coefficient, size_t n)
{
    pb_value value = number(b, coefficient[n - 1]);

    for (size_t k = n - 1; k-- > 0;)
        value = pb_builder_emit(b, PB_VM_ADD, times(b, value, u), number(b, coefficient[k]), -1);
    return value;
}

pb_value pb_ground_args_per_metre(struct pb_builder *b, int32_t grid, const double transform[6],
                                  int axis)
{
    const struct law law = law_of(b, grid, transform, axis);
    const double pole = pole_of(&law);
    const pb_value equator = number(b, 1.0 / (law.unit->axis * law.unit->radians));
    double coefficient[PB_SERIES_MAX];
    const size_t n = pb_series_fit(smooth_at, &law, TOLERANCE, coefficient);
    pb_value share = polynomial(b, place_of(b, &law, law.middle, 1.0 / law.half), coefficient, n);

    if (law.unit->law == PB_GROUND_MERCATOR)
        return times(b, share, equator);
    if (!law.by_poles)
        return pb_builder_emit(b, PB_VM_DIV, equator, share, -1);
    share = times(b, share, place_of(b, &law, pole, -1.0 / pole));
    share = times(b, share, place_of(b, &law, -pole, 1.0 / pole));
    return pb_builder_emit(
        b, PB_VM_WHERE, pb_builder_emit(b, PB_VM_GT, share, number(b, AT_POLE), -1),
        pb_builder_emit(b, PB_VM_DIV, equator, share, -1), number(b, (double)pb_pixel_nan()));
}
