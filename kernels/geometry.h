/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GEOMETRY_H
#define PB_GEOMETRY_H
/* Grids of pixels, and where one lies on another. Pixel c of an axis covers [c, c + 1), its centre
 * is c + 0.5. Axes are parallel: a grid is a shifted and scaled one. Arithmetic in float64 without
 * contraction, so every device finds the same pixels. C11 and C++17. Thread: any. */
#include "kernels/area.h"
#include "kernels/calibration.h"
#include "kernels/ground.h"
#include "kernels/pixel.h"

/* x of one grid is x * scale_x + offset_x of another, y likewise. Scales are above 0. */
struct pb_map {
    double scale_x, scale_y, offset_x, offset_y;
};

/* A grid: its size in pixels, and the map from a grid that all grids of its frame refer to. The
 * scene's coordinate system is frame 0, each that a step brings pixels into is another. */
struct pb_geometry {
    int32_t w, h;
    struct pb_map map;
    int32_t frame;
};

/* The largest grid that a step may make. */
struct pb_grid_limits {
    int32_t side_px;        /* width, and height */
    uint64_t pixels;        /* width x height */
    uint64_t growth_pixels; /* the same, by the pixels that the scene has */
    uint64_t growth;        /* the configured factor between them, for messages */
};

struct pb_way_finder;

/* What steps may know of the scene. */
struct pb_scene_facts {
    bool assumed; /* no scene is there yet: sizes and places stand for those that will come */
    const struct pb_grid_limits *limits; /* NULL = none */
    bool has_transform;
    double transform[6];              /* GDAL's order: x0, dx/dcol, dx/drow, y0, dy/dcol, dy/drow */
    struct pb_ground_unit unit;       /* of x and y */
    pb_calibration_find *calibration; /* of steps that calibrate; NULL = no metadata were read */
    const void *calibration_of;
    pb_area_find *area; /* of steps that name one; NULL = none was looked for */
    const void *area_of;
    const struct pb_way_finder *ways;  /* of steps that change the coordinate system (way.h); NULL =
                                          nobody knows where the scene lies */
    const struct pb_ground_tile *tile; /* that products are made of, of a step that cuts them into
                                          tiles; NULL = none was chosen */
};

PB_PIXEL struct pb_map pb_map_identity(void)
{
    const struct pb_map map = {1.0, 1.0, 0.0, 0.0};
    return map;
}

PB_PIXEL bool pb_map_equal(const struct pb_map *a, const struct pb_map *b)
{
    return a->scale_x == b->scale_x && a->scale_y == b->scale_y && a->offset_x == b->offset_x &&
           a->offset_y == b->offset_y;
}

/* From the grid of `from` to the grid of `to`, both mapped from the same one. */
PB_PIXEL struct pb_map pb_map_between(const struct pb_map *from, const struct pb_map *to)
{
    struct pb_map map;
    map.scale_x = to->scale_x / from->scale_x;
    map.scale_y = to->scale_y / from->scale_y;
    map.offset_x = to->offset_x - from->offset_x * map.scale_x;
    map.offset_y = to->offset_y - from->offset_y * map.scale_y;
    return map;
}

/* The transform of a grid, pixel to coordinates in GDAL's order, from that of the grid it is mapped
 * from. */
PB_PIXEL void pb_map_transform(const struct pb_map *map, const double from[6], double out[6])
{
    for (int i = 0; i < 6; i += 3) {
        out[i + 1] = from[i + 1] / map->scale_x;
        out[i + 2] = from[i + 2] / map->scale_y;
        out[i] = from[i] - out[i + 1] * map->offset_x - out[i + 2] * map->offset_y;
    }
}

/* Whether the map only shifts, by whole pixels. */
PB_PIXEL bool pb_map_is_shift(const struct pb_map *map)
{
    return map->scale_x == 1.0 && map->scale_y == 1.0 && map->offset_x == rint(map->offset_x) &&
           map->offset_y == rint(map->offset_y) && fabs(map->offset_x) < 2147483648.0 &&
           fabs(map->offset_y) < 2147483648.0;
}

/* The pixels of a grid that `rect` of another one touches and `margin` more on every side, clipped
 * to the grid; w and h are 0 when there are none. map: from the grid of rect to that of the size.
 */
PB_PIXEL struct pb_rect pb_rect_on(const struct pb_map *map, int32_t w, int32_t h,
                                   const struct pb_rect *rect, int32_t margin)
{
    const double left = floor(rect->x * map->scale_x + map->offset_x) - margin;
    const double top = floor(rect->y * map->scale_y + map->offset_y) - margin;
    const double right = ceil(((double)rect->x + rect->w) * map->scale_x + map->offset_x) + margin;
    const double bottom = ceil(((double)rect->y + rect->h) * map->scale_y + map->offset_y) + margin;
    const double x0 = left > 0 ? left : 0, y0 = top > 0 ? top : 0;
    const double x1 = right < w ? right : w, y1 = bottom < h ? bottom : h;
    struct pb_rect out = {0, 0, 0, 0};
    if (x1 > x0 && y1 > y0) {
        out.x = (int32_t)x0;
        out.y = (int32_t)y0;
        out.w = (int32_t)(x1 - x0);
        out.h = (int32_t)(y1 - y0);
    }
    return out;
}
#endif
