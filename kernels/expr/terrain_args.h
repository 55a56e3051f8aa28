/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TERRAIN_ARGS_H
#define PB_TERRAIN_ARGS_H
/* What operators on elevations share: how steeply they rise towards east and north, from the
 * gradient along columns and rows and the place of the pixels on the ground. During an operator's
 * build() only. */
#include "kernels/expr/focal_args.h"

/* Of `method`. */
enum pb_terrain_method { PB_TERRAIN_HORN, PB_TERRAIN_ZEVENBERGEN_THORNE };

/* The member `terrain` of the operators' structs. */
struct pb_terrain {
    int32_t method, edge;
    double factor, pixel; /* pixel: 0 = of the scene */
};

/* Rows for a member struct pb_terrain terrain, three of them. */
#define PB_KEY_TERRAIN_METHOD(params)                                                              \
    {                                                                                              \
        .name = "method", .type = PB_KEY_CHOICE, .offset = offsetof(params, terrain.method),       \
        .def = "horn", .choices = "horn|zevenbergen-thorne",                                       \
        .doc = "Gradient of 3 x 3 pixels: Horn's of all, for rough terrain, or that of the four "  \
               "nearest, for smooth terrain."                                                      \
    }
#define PB_KEY_TERRAIN_FACTOR(params)                                                              \
    {                                                                                              \
        .name = "factor", .type = PB_KEY_NUMBER, .offset = offsetof(params, terrain.factor),       \
        .min = 1e-6, .max = 1e6, .def = "1",                                                       \
        .doc = "Elevations times this are metres (0.3048 of feet), or are exaggerated."            \
    }
#define PB_KEY_TERRAIN_PIXEL(params)                                                               \
    {                                                                                              \
        .name = "pixel", .type = PB_KEY_NUMBER, .offset = offsetof(params, terrain.pixel),         \
        .min = 0, .max = 1e9, .def = "0",                                                          \
        .doc = "Side of a pixel in metres; 0: from the scene's georeferencing."                    \
    }
#define PB_KEY_TERRAIN_EDGE(params)                                                                \
    {                                                                                              \
        .name = "edge", .type = PB_KEY_CHOICE, .offset = offsetof(params, terrain.edge),           \
        .def = "nodata", PB_TERRAIN_EDGES                                                          \
    }
/* `edge` of operators with a struct of their own. */
#define PB_KEY_RELIEF_EDGE(params)                                                                 \
    {                                                                                              \
        .name = "edge", .type = PB_KEY_CHOICE, .offset = offsetof(params, edge), .def = "nodata",  \
        PB_TERRAIN_EDGES                                                                           \
    }
#define PB_TERRAIN_EDGES                                                                           \
    .choices = "reflect|clamp|nodata|extrapolate",                                                 \
    .doc = "Values used for pixels outside the image. extrapolate: twice the pixel at the edge "   \
           "less the one as far inside, and an invalid neighbour counts as the pixel itself: "     \
           "-compute_edges of gdaldem, which repeats columns at the four corners instead."

/* For the documentation of the operators. */
#define PB_TERRAIN_NODATA                                                                          \
    "A pixel is invalid where one of its 3 x 3 neighbourhood is, and with edge: nodata where a "   \
    "part of it is outside the image; with edge: extrapolate only where it is itself."
#define PB_RELIEF_NODATA                                                                           \
    "A pixel is invalid where one of its neighbourhood is, and with edge: nodata where a part of " \
    "it is outside the image; with edge: extrapolate only where it is itself."
#define PB_TERRAIN_NOTES                                                                           \
    "The size of a pixel is computed from the scene's georeferencing, in metres whatever the "     \
    "unit\n"                                                                                       \
    "of the coordinate system. In degrees, and in Mercator's projection (also web Mercator), it "  \
    "is\n"                                                                                         \
    "the length on the ellipsoid at the pixel's own latitude, where gdaldem has one number for\n"  \
    "all rows (-s); a pixel within 6 m of a pole is invalid. Columns and rows may point "          \
    "anywhere.\n"                                                                                  \
    "\n"

/* Metres that elevations rise for each metre towards east and north. Poison, after a report, when
 * neither the scene nor `pixel` says how large pixels are. */
struct pb_terrain_slope {
    pb_value east, north;
    const struct pb_terrain *terrain; /* what it was made of, for pb_terrain_args_bend */
    pb_value elevation;
    double inverse[4];
    pb_value
        per_metre[2]; /* -1: inverse is of metres; else of units, so many of which a metre has */
};
/* Makes a value of the slope; params: the operator's struct. */
typedef pb_value pb_terrain_value(const void *params, struct pb_builder *b,
                                  const struct pb_terrain_slope *slope);
/* Defines what `value` makes of the slope of each of the step's bands. 0 or a negative errno. */
int pb_terrain_args_define(const struct pb_terrain *terrain, const struct pb_items *bands,
                           pb_terrain_value *value, const void *params, struct pb_builder *b);
/* How fast the slope changes, for each metre: the rise towards east along the east, that towards
 * north along the north, and each along the other. By Zevenbergen and Thorne's differences. */
struct pb_terrain_bend {
    pb_value east, north, both;
};
struct pb_terrain_bend pb_terrain_args_bend(struct pb_builder *b,
                                            const struct pb_terrain_slope *slope);
/* The square of the length of the slope. */
pb_value pb_terrain_args_square(struct pb_builder *b, const struct pb_terrain_slope *slope);
#endif
