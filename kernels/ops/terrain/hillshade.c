/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * hillshade: how bright terrain is under a light far away. */
#include "kernels/expr/terrain_args.h"

#include <math.h>

#define DEGREE (3.14159265358979323846 / 180.0)

struct hillshade {
    struct pb_terrain terrain;
    double azimuth, altitude;
    bool has_azimuth, has_altitude;
    int32_t shading;
    struct pb_items bands;
};

enum shading { SINGLE, MULTIDIRECTIONAL, COMBINED, IGOR };

static const struct pb_key keys[] = {
    {.name = "shading",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct hillshade, shading),
     .choices = "single|multidirectional|combined|igor",
     .def = "single",
     .doc = "single: one light; multidirectional: four, from 225, 270, 315 and 360 degrees; "
            "combined: one light, and slopes darker; igor: one light, and only slopes dark, for "
            "maps with colours."},
    {.name = "azimuth",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct hillshade, azimuth),
     .more = offsetof(struct hillshade, has_azimuth),
     .min = 0,
     .max = 360,
     .doc = "Direction of the light source, in degrees clockwise from north; default 315, the "
            "north-west. Not for shading: multidirectional."},
    {.name = "altitude",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct hillshade, altitude),
     .more = offsetof(struct hillshade, has_altitude),
     .min = 0,
     .max = 90,
     .doc = "Of the light above the horizon, in degrees; 45 when not given. Not for shading: "
            "igor."},
    PB_KEY_TERRAIN_METHOD(struct hillshade),
    PB_KEY_TERRAIN_FACTOR(struct hillshade),
    PB_KEY_TERRAIN_PIXEL(struct hillshade),
    PB_KEY_TERRAIN_EDGE(struct hillshade),
    PB_KEY_FOCAL_BANDS(struct hillshade),
};

static pb_value add(struct pb_builder *b, pb_value x, pb_value y)
{
    return pb_builder_emit(b, PB_VM_ADD, x, y, -1);
}

static pb_value times(struct pb_builder *b, pb_value x, pb_value y)
{
    return pb_builder_emit(b, PB_VM_MUL, x, y, -1);
}

static pb_value number(struct pb_builder *b, double value)
{
    return pb_builder_constant(b, (float)value);
}

/* e * east + n * north */
static pb_value dot(struct pb_builder *b, const struct pb_terrain_slope *rise, double east,
                    double north)
{
    return add(b, times(b, rise->east, number(b, east)), times(b, rise->north, number(b, north)));
}

/* What the light of an azimuth gives: the cosine of the angle between it and what stands upright on
 * the ground, times the length of (e, n, 1). */
static pb_value light_of(const struct hillshade *h, struct pb_builder *b,
                         const struct pb_terrain_slope *rise, double azimuth)
{
    const double along = cos(h->altitude * DEGREE);

    return pb_builder_emit(
        b, PB_VM_SUB, number(b, sin(h->altitude * DEGREE)),
        dot(b, rise, along * sin(azimuth * DEGREE), along * cos(azimuth * DEGREE)), -1);
}

/* 1 + scale * lit / sqrt(1 + square) */
static pb_value shade_of(struct pb_builder *b, pb_value lit, pb_value square, double scale)
{
    const pb_value one = number(b, 1), length = add(b, one, square);
    const pb_value cosine =
        pb_builder_emit(b, PB_VM_DIV, lit, pb_builder_emit(b, PB_VM_SQRT, length, -1, -1), -1);

    return add(b, one, times(b, cosine, number(b, scale)));
}

static pb_value above_zero(struct pb_builder *b, pb_value x)
{
    return pb_builder_emit(b, PB_VM_MAX, x, number(b, 0), -1);
}

/* Four lights, each weighted by the square of the sine of the angle between its azimuth and the
 * aspect: the more, the less a slope faces it. */
static pb_value multidirectional(const struct hillshade *h, struct pb_builder *b,
                                 const struct pb_terrain_slope *rise, pb_value square)
{
    const pb_value half = times(b, square, number(b, 0.5));
    const pb_value product = times(b, rise->east, rise->north);
    const pb_value weight[4] = {add(b, half, product), times(b, rise->east, rise->east),
                                pb_builder_emit(b, PB_VM_SUB, half, product, -1),
                                times(b, rise->north, rise->north)};
    pb_value sum = -1;

    for (int i = 0; i < 4; i++) {
        const pb_value lit = above_zero(b, light_of(h, b, rise, 225 + 45 * i));
        const pb_value term = times(b, weight[i], lit);

        sum = i == 0 ? term : add(b, sum, term);
    }
    const pb_value level = pb_builder_emit(b, PB_VM_EQ, square, number(b, 0), -1);
    const pb_value lit = pb_builder_emit(b, PB_VM_DIV, sum, square, -1);

    return pb_builder_emit(b, PB_VM_WHERE, level, number(b, 1 + 254 * sin(h->altitude * DEGREE)),
                           shade_of(b, lit, square, 127));
}

/* 1 - angle of the light * slope, both as shares of a right angle. The angle comes of the products
 * of the light and of what stands upright, which is exact where they are near each other. */
static pb_value combined(const struct hillshade *h, struct pb_builder *b,
                         const struct pb_terrain_slope *rise, pb_value square)
{
    const double up = sin(h->altitude * DEGREE), along = cos(h->altitude * DEGREE);
    const double east = along * sin(h->azimuth * DEGREE), north = along * cos(h->azimuth * DEGREE);
    const pb_value x = add(b, times(b, rise->north, number(b, up)), number(b, north));
    const pb_value y = add(b, times(b, rise->east, number(b, up)), number(b, east));
    const pb_value z = dot(b, rise, north, -east);
    const pb_value across = add(b, add(b, times(b, x, x), times(b, y, y)), times(b, z, z));
    const pb_value angle =
        pb_builder_emit(b, PB_VM_ATAN2, pb_builder_emit(b, PB_VM_SQRT, across, -1, -1),
                        light_of(h, b, rise, h->azimuth), -1);
    const pb_value slope = pb_builder_emit(
        b, PB_VM_ATAN2, pb_builder_emit(b, PB_VM_SQRT, square, -1, -1), number(b, 1), -1);
    const pb_value dark =
        times(b, times(b, angle, slope), number(b, 1 / (90 * DEGREE * 90 * DEGREE)));
    const pb_value light = pb_builder_emit(b, PB_VM_SUB, number(b, 1), dark, -1);

    return add(b, number(b, 1), times(b, above_zero(b, light), number(b, 254)));
}

/* 255 less the slope's share of a right angle times that of the aspect's turn from the light. */
static pb_value igor(const struct hillshade *h, struct pb_builder *b,
                     const struct pb_terrain_slope *rise, pb_value square)
{
    const double east = sin(h->azimuth * DEGREE), north = cos(h->azimuth * DEGREE);
    const pb_value across = pb_builder_emit(b, PB_VM_ABS, dot(b, rise, north, -east), -1, -1);
    const pb_value turn = pb_builder_emit(b, PB_VM_ATAN2, across, dot(b, rise, east, north), -1);
    const pb_value slope = pb_builder_emit(
        b, PB_VM_ATAN2, pb_builder_emit(b, PB_VM_SQRT, square, -1, -1), number(b, 1), -1);
    const pb_value away = pb_builder_emit(b, PB_VM_SUB, number(b, 1),
                                          times(b, turn, number(b, 1 / (180 * DEGREE))), -1);
    const pb_value dark = times(b, times(b, slope, away), number(b, 255 / (90 * DEGREE)));
    const pb_value level = pb_builder_emit(b, PB_VM_EQ, square, number(b, 0), -1);

    return pb_builder_emit(b, PB_VM_WHERE, level, number(b, 255),
                           pb_builder_emit(b, PB_VM_SUB, number(b, 255), dark, -1));
}

static pb_value hillshade_of(const void *params, struct pb_builder *b,
                             const struct pb_terrain_slope *rise)
{
    const struct hillshade *const h = params;
    const pb_value square = pb_terrain_args_square(b, rise);

    switch (h->shading) {
    case MULTIDIRECTIONAL:
        return multidirectional(h, b, rise, square);
    case COMBINED:
        return combined(h, b, rise, square);
    case IGOR:
        return igor(h, b, rise, square);
    default:
        return shade_of(b, above_zero(b, light_of(h, b, rise, h->azimuth)), square, 254);
    }
}

static int build(const void *params, struct pb_builder *b)
{
    const struct hillshade *const given = params;
    struct hillshade hillshade = *given;

    if (given->shading == MULTIDIRECTIONAL && given->has_azimuth)
        (void)pb_builder_wrong(b, &given->azimuth,
                               "azimuth is of one light, and shading: multidirectional has four at "
                               "225, 270, 315 and 360 degrees; leave it out");
    if (given->shading == IGOR && given->has_altitude)
        (void)pb_builder_wrong(b, &given->altitude,
                               "shading: igor knows no altitude of its light; leave it out");
    hillshade.azimuth = given->has_azimuth ? given->azimuth : 315.0;
    hillshade.altitude = given->has_altitude ? given->altitude : 45.0;
    return pb_terrain_args_define(&given->terrain, &given->bands, hillshade_of, &hillshade, b);
}

static const struct pb_op_case cases[] = {
    {"from north-west", "N", true, {{NULL, {{.text = NULL}}}}},
    {"from south, reflected",
     "H",
     true,
     {{"azimuth", {{.text = "180", .num = 180}}},
      {"edge", {{.text = "reflect"}}},
      {"bands", {{.key = "H", .text = "N"}}}}},
    {"multidirectional", "N", true, {{"shading", {{.text = "multidirectional"}}}}},
    {"combined", "N", true, {{"shading", {{.text = "combined"}}}}},
    {"igor", "N", true, {{"shading", {{.text = "igor"}}}}},
};

const struct pb_op pb_op_hillshade = {
    .name = "hillshade",
    .doc =
        {
            .summary = "shaded relief from elevations",
            .formula =
                "e and n the rise towards east and north, s = e^2 + n^2, a the altitude and z "
                "the azimuth of the light, light(z) = (sin(a) - cos(a) * (e * sin(z) + n * "
                "cos(z))) / sqrt(1 + s). single: 1 + 254 * max(0, light(z)). "
                "multidirectional: 1 + 127 * (w225 + w270 + w315 + w360) / s, of max(0, "
                "light(z)) times s/2 + e*n, e^2, s/2 - e*n and n^2. combined: 1 + 254 * max(0, "
                "1 - acos(light(z)) * atan(sqrt(s)) / 90^2). igor: 255 * (1 - atan(sqrt(s)) / "
                "90 * (1 - d / 180)), d the angle between the aspect and z + 180.",
            .units = "Brightness, from 1 to 255; igor from 0.",
            .nodata = PB_TERRAIN_NODATA,
            .source =
                "Horn 1981, Proceedings of the IEEE 69:14-47; multidirectional: Mark 1992, U.S. "
                "Geological Survey Open-File Report 92-422. As gdaldem's hillshade, also with "
                "-multidirectional, -combined and -igor, before its rounding to whole "
                "numbers.",
            .notes = PB_TERRAIN_NOTES
            "  - hillshade: {bands: {SHADE: DEM}}\n"
            "  - hillshade: {shading: multidirectional, bands: {SHADE: DEM}}\n"
            "  - hillshade: {azimuth: 225, altitude: 30, factor: 2, bands: {SHADE: DEM}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct hillshade),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
