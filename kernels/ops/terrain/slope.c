/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * slope: how steep terrain is. */
#include "kernels/expr/terrain_args.h"

struct slope {
    struct pb_terrain terrain;
    int32_t unit;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "unit",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct slope, unit),
     .choices = "degrees|percent",
     .def = "degrees",
     .doc = "Of the result: the angle, or 100 times its tangent."},
    PB_KEY_TERRAIN_METHOD(struct slope),
    PB_KEY_TERRAIN_FACTOR(struct slope),
    PB_KEY_TERRAIN_PIXEL(struct slope),
    PB_KEY_TERRAIN_EDGE(struct slope),
    PB_KEY_FOCAL_BANDS(struct slope),
};

static pb_value slope_of(const void *params, struct pb_builder *b,
                         const struct pb_terrain_slope *rise)
{
    const struct slope *const slope = params;
    const pb_value tangent =
        pb_builder_emit(b, PB_VM_SQRT, pb_terrain_args_square(b, rise), -1, -1);
    const pb_value one = pb_builder_constant(b, 1.0f);
    const pb_value hundred = pb_builder_constant(b, 100.0f);
    const pb_value degrees = pb_builder_constant(b, 57.29577951308232f);

    if (slope->unit == 1)
        return pb_builder_emit(b, PB_VM_MUL, tangent, hundred, -1);
    return pb_builder_emit(b, PB_VM_MUL, pb_builder_emit(b, PB_VM_ATAN2, tangent, one, -1), degrees,
                           -1);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct slope *const slope = params;

    return pb_terrain_args_define(&slope->terrain, &slope->bands, slope_of, slope, b);
}

static const struct pb_op_case cases[] = {
    {"degrees", "N", true, {{NULL, {{.text = NULL}}}}},
    {"percent, reflected",
     "S",
     true,
     {{"unit", {{.text = "percent"}}},
      {"edge", {{.text = "reflect"}}},
      {"bands", {{.key = "S", .text = "N"}}}}},
    {"zevenbergen-thorne",
     "N",
     true,
     {{"method", {{.text = "zevenbergen-thorne"}}}, {"edge", {{.text = "clamp"}}}}},
    {"extrapolated", "N", true, {{"edge", {{.text = "extrapolate"}}}}},
};

const struct pb_op pb_op_slope = {
    .name = "slope",
    .doc =
        {
            .summary = "steepness of terrain from elevations",
            .formula = "atan(sqrt(e^2 + n^2)), e and n the rise towards east and north; percent: "
                       "100 * sqrt(e^2 + n^2).",
            .units = "Degrees, or percent.",
            .nodata = PB_TERRAIN_NODATA,
            .source =
                "Horn 1981, Proceedings of the IEEE 69:14-47; Zevenbergen and Thorne 1987, Earth "
                "Surface Processes and Landforms 12:47-56. As gdaldem's slope, to its rounding.",
            .notes =
                PB_TERRAIN_NOTES "  - slope: {bands: {SLOPE: DEM}}\n"
                                 "  - slope: {unit: percent, pixel: 30, bands: {SLOPE: DEM}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct slope),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
