/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/terrain_args.h"

#include "kernels/expr/band_list.h"
#include "kernels/expr/grid_args.h"
#include "kernels/expr/ground_args.h"
#include "kernels/focal/gradient_pixel.h"

#include <math.h>
#include <string.h>

/* What is not known is metres. */
static double unit_of(const struct pb_ground_unit *unit, int axis)
{
    return unit->law == PB_GROUND_EVEN && unit->metres[axis] > 0 ? unit->metres[axis] : 1.0;
}

/* How far towards east and north a step to the next column and row goes: { east a column, east a
 * row, north a column, north a row }, in metres; in units of the coordinate system where per_metre
 * says how many of them a metre has at each pixel, else per_metre[0] is -1. False: not known. */
static bool steps_of(const struct pb_terrain *terrain, struct pb_builder *b, pb_value elevation,
                     double step[4], pb_value per_metre[2])
{
    const struct pb_scene_facts *const scene = pb_builder_scene(b);
    const int32_t grid = pb_builder_grid(b, elevation);
    double transform[6];

    per_metre[0] = per_metre[1] = -1;
    if (terrain->pixel > 0 || grid < 0) {
        step[0] = terrain->pixel > 0 ? terrain->pixel : 1.0;
        step[1] = step[2] = 0.0;
        step[3] = -step[0];
        return true;
    }
    if (scene->assumed) {
        step[0] = step[3] = 1.0;
        step[1] = step[2] = 0.0;
        return true;
    }
    if (!pb_grid_args_transform(b, grid, transform))
        return false;
    const struct pb_ground_unit *const unit = pb_ground_args_unit(b, grid);
    for (int i = 0; i < 2; i++) {
        step[i] = transform[1 + i] * unit_of(unit, 0);
        step[2 + i] = transform[4 + i] * unit_of(unit, 1);
        if (unit->law != PB_GROUND_EVEN)
            per_metre[i] = pb_ground_args_per_metre(b, grid, transform, i);
    }
    return true;
}

static pb_value gradient(struct pb_builder *b, const struct pb_terrain *terrain,
                         enum pb_gradient choice, pb_value elevation)
{
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_GRADIENT;
    focal.choice = (int32_t)choice;
    focal.edge = pb_focal_args_edge(terrain->edge);
    focal.radius = 1;
    return pb_builder_focal(b, &focal, elevation);
}

/* column * a + row * c, without the half whose number is 0. */
static pb_value combine(struct pb_builder *b, pb_value column, double a, pb_value row, double c)
{
    const pb_value x = pb_builder_emit(b, PB_VM_MUL, column, pb_builder_constant(b, (float)a), -1);
    const pb_value y = pb_builder_emit(b, PB_VM_MUL, row, pb_builder_constant(b, (float)c), -1);

    return c == 0.0 ? x : a == 0.0 ? y : pb_builder_emit(b, PB_VM_ADD, x, y, -1);
}

/* What was made for each unit of the coordinate system, for each metre. */
static pb_value in_metres(struct pb_builder *b, pb_value x, pb_value per_metre)
{
    return per_metre < 0 ? x : pb_builder_emit(b, PB_VM_MUL, x, per_metre, -1);
}

static struct pb_terrain_slope slope_of(const struct pb_terrain *terrain, struct pb_builder *b,
                                        pb_value elevation)
{
    const bool horn = terrain->method == PB_TERRAIN_HORN;
    struct pb_terrain_slope slope = {.east = PB_VALUE_POISON,
                                     .north = PB_VALUE_POISON,
                                     .terrain = terrain,
                                     .elevation = PB_VALUE_POISON};
    double step[4];

    if (elevation == PB_VALUE_POISON)
        return slope;
    if (!steps_of(terrain, b, elevation, step, slope.per_metre)) {
        (void)pb_builder_wrong(b, &terrain->pixel,
                               "the size of the scene's pixels is unknown, because it has no "
                               "geotransform; give 'pixel', their side in metres");
        return slope;
    }
    /* The gradient along columns and rows is the transposed matrix of steps times that towards east
     * and north. */
    const double scale = 1.0 / (step[0] * step[3] - step[1] * step[2]);
    const double factor = terrain->factor;
    const pb_value column =
        gradient(b, terrain, horn ? PB_GRADIENT_HORN_X : PB_GRADIENT_ZEVENBERGEN_X, elevation);
    const pb_value row =
        gradient(b, terrain, horn ? PB_GRADIENT_HORN_Y : PB_GRADIENT_ZEVENBERGEN_Y, elevation);

    slope.elevation = elevation;
    slope.inverse[0] = step[3] * scale;
    slope.inverse[1] = -step[2] * scale;
    slope.inverse[2] = -step[1] * scale;
    slope.inverse[3] = step[0] * scale;
    slope.east =
        in_metres(b, combine(b, column, slope.inverse[0] * factor, row, slope.inverse[1] * factor),
                  slope.per_metre[0]);
    slope.north =
        in_metres(b, combine(b, column, slope.inverse[2] * factor, row, slope.inverse[3] * factor),
                  slope.per_metre[1]);
    return slope;
}

/* Along two directions, that are x columns and y rows a metre each: of xx, yy and xy the
 * derivatives along columns and rows. */
static pb_value bend_along(struct pb_builder *b, const pb_value second[3], const double first[2],
                           const double other[2], double factor)
{
    const pb_value straight = combine(b, second[0], first[0] * other[0] * factor, second[1],
                                      first[1] * other[1] * factor);
    const double across = (first[0] * other[1] + first[1] * other[0]) * factor;

    if (across == 0.0)
        return straight;
    const pb_value skew =
        pb_builder_emit(b, PB_VM_MUL, second[2], pb_builder_constant(b, (float)across), -1);
    return first[0] * other[0] == 0.0 && first[1] * other[1] == 0.0
               ? skew
               : pb_builder_emit(b, PB_VM_ADD, straight, skew, -1);
}

struct pb_terrain_bend pb_terrain_args_bend(struct pb_builder *b,
                                            const struct pb_terrain_slope *slope)
{
    static const enum pb_gradient choices[3] = {
        PB_GRADIENT_ZEVENBERGEN_XX, PB_GRADIENT_ZEVENBERGEN_YY, PB_GRADIENT_ZEVENBERGEN_XY};
    const double *const east = slope->inverse, *const north = slope->inverse + 2;
    const double factor = slope->terrain->factor;
    struct pb_terrain_bend bend = {PB_VALUE_POISON, PB_VALUE_POISON, PB_VALUE_POISON};
    pb_value second[3];

    if (slope->elevation == PB_VALUE_POISON)
        return bend;
    for (int i = 0; i < 3; i++)
        second[i] = gradient(b, slope->terrain, choices[i], slope->elevation);
    const pb_value *const per = slope->per_metre;
    bend.east =
        in_metres(b, in_metres(b, bend_along(b, second, east, east, factor), per[0]), per[0]);
    bend.north =
        in_metres(b, in_metres(b, bend_along(b, second, north, north, factor), per[1]), per[1]);
    bend.both =
        in_metres(b, in_metres(b, bend_along(b, second, east, north, factor), per[0]), per[1]);
    return bend;
}

int pb_terrain_args_define(const struct pb_terrain *terrain, const struct pb_items *bands,
                           pb_terrain_value *value, const void *params, struct pb_builder *b)
{
    const size_t n = pb_band_list_count(bands, b);
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(bands, b, i);
        const struct pb_terrain_slope slope = slope_of(terrain, b, pick.value);

        rc = pb_builder_define(b, pick.out, value(params, b, &slope));
    }
    return rc;
}

pb_value pb_terrain_args_square(struct pb_builder *b, const struct pb_terrain_slope *slope)
{
    return pb_builder_emit(b, PB_VM_ADD,
                           pb_builder_emit(b, PB_VM_MUL, slope->east, slope->east, -1),
                           pb_builder_emit(b, PB_VM_MUL, slope->north, slope->north, -1), -1);
}
