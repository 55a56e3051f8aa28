/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/grid_args.h"

#include <string.h>

/* New pixels so many times as wide as the old ones take the class that most of them have. */
#define COARSER 2.0

/* By its value, or by the name that it had or gets. */
static enum pb_builder_class class_of(struct pb_builder *b, const struct pb_band_pick *pick)
{
    const enum pb_builder_class found = pb_builder_class(b, pick->value, pick->out);
    const bool renamed = pick->item != NULL && pick->item->text != NULL;

    if (found == PB_CLASS_FILE || !renamed)
        return found;
    const enum pb_builder_class before = pb_builder_class(b, pick->value, pick->item->text);
    return before > found ? before : found;
}

enum pb_resampling pb_grid_args_how(const struct pb_grid_method *method, struct pb_builder *b,
                                    const struct pb_band_pick *pick, int32_t to)
{
    const enum pb_builder_class classes = class_of(b, pick);

    if (method->has) {
        const enum pb_resampling how = (enum pb_resampling)method->given;

        if (classes == PB_CLASS_FILE && !pb_resampling_chooses(how) &&
            pb_builder_grid(b, pick->value) != to)
            pb_builder_note_mixed(b, pick->out, how);
        return how;
    }
    if (classes == PB_CLASS_NO)
        return method->usual;
    return pb_builder_coarser(b, pick->value, to) >= COARSER * (1 - 1e-6) ? PB_MODE : PB_NEAREST;
}

bool pb_grid_args_transform(const struct pb_builder *b, int32_t grid, double out_transform[6])
{
    const struct pb_scene_facts *const scene = pb_builder_scene(b);
    const struct pb_geometry geometry = pb_builder_geometry(b, grid);
    const struct pb_ground *const ground = pb_builder_ground(b, geometry.frame);

    if (ground != NULL && !scene->assumed) {
        pb_map_transform(&geometry.map, ground->transform, out_transform);
        return true;
    }
    if (!scene->has_transform || isnan(geometry.map.scale_x))
        return false;
    pb_map_transform(&geometry.map, scene->transform, out_transform);
    return true;
}

bool pb_grid_args_pixel(const double t[6], double x, double y, double *out_column, double *out_row)
{
    const double determinant = t[1] * t[5] - t[2] * t[4];
    const double dx = x - t[0], dy = y - t[3];

    *out_column = (dx * t[5] - dy * t[2]) / determinant;
    *out_row = (dy * t[1] - dx * t[4]) / determinant;
    return isfinite(*out_column) && isfinite(*out_row);
}

struct pb_geometry pb_grid_args_window(const struct pb_geometry *grid, const struct pb_rect *window)
{
    struct pb_geometry out = {window->w, window->h, grid->map, grid->frame};

    out.map.offset_x -= window->x;
    out.map.offset_y -= window->y;
    return out;
}

struct pb_geometry pb_grid_args_scaled(const struct pb_geometry *grid, int32_t w, int32_t h,
                                       double factor_x, double factor_y)
{
    const struct pb_map map = {grid->map.scale_x * factor_x, grid->map.scale_y * factor_y,
                               grid->map.offset_x * factor_x, grid->map.offset_y * factor_y};

    return (struct pb_geometry){w, h, map, grid->frame};
}
