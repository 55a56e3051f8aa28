/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * hillshade: how bright terrain is under a light far away. */
#include "kernels/expr/terrain_args.h"

#include <math.h>

struct hillshade {
    struct pb_terrain terrain;
    double azimuth, altitude;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "azimuth",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct hillshade, azimuth),
     .min = 0,
     .max = 360,
     .def = "315",
     .doc = "Where the light comes from, in degrees clockwise from north."},
    {.name = "altitude",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct hillshade, altitude),
     .min = 0,
     .max = 90,
     .def = "45",
     .doc = "Of the light above the horizon, in degrees."},
    PB_KEY_TERRAIN_METHOD(struct hillshade),
    PB_KEY_TERRAIN_FACTOR(struct hillshade),
    PB_KEY_TERRAIN_PIXEL(struct hillshade),
    PB_KEY_TERRAIN_EDGE(struct hillshade),
    PB_KEY_FOCAL_BANDS(struct hillshade),
};

/* The cosine of the angle between the light and what stands upright on the ground. */
static pb_value hillshade_of(const void *params, struct pb_builder *b,
                             const struct pb_terrain_slope *rise)
{
    const struct hillshade *const hillshade = params;
    const double degree = 3.14159265358979323846 / 180.0;
    const double up = sin(hillshade->altitude * degree), along = cos(hillshade->altitude * degree);
    const double east = along * sin(hillshade->azimuth * degree);
    const double north = along * cos(hillshade->azimuth * degree);
    const pb_value one = pb_builder_constant(b, 1.0f), zero = pb_builder_constant(b, 0.0f);
    const pb_value lit = pb_builder_emit(
        b, PB_VM_SUB, pb_builder_constant(b, (float)up),
        pb_builder_emit(
            b, PB_VM_ADD,
            pb_builder_emit(b, PB_VM_MUL, rise->east, pb_builder_constant(b, (float)east), -1),
            pb_builder_emit(b, PB_VM_MUL, rise->north, pb_builder_constant(b, (float)north), -1),
            -1),
        -1);
    const pb_value length = pb_builder_emit(
        b, PB_VM_SQRT, pb_builder_emit(b, PB_VM_ADD, one, pb_terrain_args_square(b, rise), -1), -1,
        -1);
    const pb_value cosine =
        pb_builder_emit(b, PB_VM_MAX, pb_builder_emit(b, PB_VM_DIV, lit, length, -1), zero, -1);

    return pb_builder_emit(
        b, PB_VM_ADD, one,
        pb_builder_emit(b, PB_VM_MUL, cosine, pb_builder_constant(b, 254.0f), -1), -1);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct hillshade *const hillshade = params;

    return pb_terrain_args_define(&hillshade->terrain, &hillshade->bands, hillshade_of, hillshade,
                                  b);
}

static const struct pb_op_case cases[] = {
    {"from north-west", "N", true, {{NULL, {{.text = NULL}}}}},
    {"from south, reflected",
     "H",
     true,
     {{"azimuth", {{.text = "180", .num = 180}}},
      {"edge", {{.text = "reflect"}}},
      {"bands", {{.key = "H", .text = "N"}}}}},
};

const struct pb_op pb_op_hillshade = {
    .name = "hillshade",
    .doc =
        {
            .summary = "shaded relief from elevations",
            .formula = "1 + 254 * max(0, (sin(a) - cos(a) * (e * sin(z) + n * cos(z))) / sqrt(1 + "
                       "e^2 + n^2)), e and n the rise towards east and north, a the altitude and z "
                       "the azimuth of the light.",
            .units = "Brightness, from 1 to 255.",
            .nodata = PB_TERRAIN_NODATA,
            .source = "Horn 1981, Proceedings of the IEEE 69:14-47. As gdaldem's hillshade before "
                      "its rounding to whole numbers.",
            .notes = PB_TERRAIN_NOTES
            "  - hillshade: {bands: {SHADE: DEM}}\n"
            "  - hillshade: {azimuth: 225, altitude: 30, factor: 2, bands: {SHADE: DEM}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct hillshade),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
