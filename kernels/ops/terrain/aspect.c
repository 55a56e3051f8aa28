/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * aspect: which way terrain falls. */
#include "kernels/expr/terrain_args.h"

struct aspect {
    struct pb_terrain terrain;
    int32_t angle, flat;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "angle",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct aspect, angle),
     .choices = "azimuth|trigonometric",
     .def = "azimuth",
     .doc = "azimuth: clockwise from north; trigonometric: counterclockwise from east."},
    {.name = "flat",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct aspect, flat),
     .choices = "nodata|zero",
     .def = "nodata",
     .doc = "Level ground: invalid, or 0."},
    PB_KEY_TERRAIN_METHOD(struct aspect),
    PB_KEY_TERRAIN_FACTOR(struct aspect),
    PB_KEY_TERRAIN_PIXEL(struct aspect),
    PB_KEY_TERRAIN_EDGE(struct aspect),
    PB_KEY_FOCAL_BANDS(struct aspect),
};

/* From -180 to 180; those below 0 become 180 to 360, and what rounding made 360 becomes 0. */
static pb_value aspect_of(const void *params, struct pb_builder *b,
                          const struct pb_terrain_slope *rise)
{
    const struct aspect *const aspect = params;
    const pb_value zero = pb_builder_constant(b, 0.0f), circle = pb_builder_constant(b, 360.0f);
    const pb_value degrees = pb_builder_constant(b, 57.29577951308232f);
    const pb_value east = pb_builder_emit(b, PB_VM_NEG, rise->east, -1, -1);
    const pb_value north = pb_builder_emit(b, PB_VM_NEG, rise->north, -1, -1);
    const bool azimuth = aspect->angle == 0;
    const pb_value radians =
        pb_builder_emit(b, PB_VM_ATAN2, azimuth ? east : north, azimuth ? north : east, -1);
    const pb_value angle = pb_builder_emit(b, PB_VM_MUL, radians, degrees, -1);
    const pb_value turned =
        pb_builder_emit(b, PB_VM_WHERE, pb_builder_emit(b, PB_VM_LT, angle, zero, -1),
                        pb_builder_emit(b, PB_VM_ADD, angle, circle, -1), angle);
    const pb_value below = pb_builder_emit(
        b, PB_VM_WHERE, pb_builder_emit(b, PB_VM_LT, turned, circle, -1), turned, zero);

    if (aspect->flat == 0)
        return below;
    return pb_builder_emit(b, PB_VM_WHERE,
                           pb_builder_emit(b, PB_VM_EQ, pb_terrain_args_square(b, rise), zero, -1),
                           zero, below);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct aspect *const aspect = params;

    return pb_terrain_args_define(&aspect->terrain, &aspect->bands, aspect_of, aspect, b);
}

static const struct pb_op_case cases[] = {
    {"horn", "N", true, {{NULL, {{.text = NULL}}}}},
    {"trigonometric, zero where flat",
     "N",
     true,
     {{"angle", {{.text = "trigonometric"}}}, {"flat", {{.text = "zero"}}}}},
    {"zevenbergen-thorne",
     "A",
     true,
     {{"method", {{.text = "zevenbergen-thorne"}}},
      {"pixel", {{.text = "10", .num = 10}}},
      {"bands", {{.key = "A", .text = "N"}}}}},
};

const struct pb_op pb_op_aspect = {
    .name = "aspect",
    .doc =
        {
            .summary = "compass direction in which terrain falls, from elevations",
            .formula =
                "The azimuth of the steepest descent, clockwise from north: atan2(-e, -n), "
                "e and n the rise towards east and north, from 0 to below 360; trigonometric: "
                "atan2(-n, -e).",
            .units = "Degrees clockwise from north, or counterclockwise from east.",
            .nodata = PB_TERRAIN_NODATA " Level ground is invalid, too, except with flat: zero.",
            .source =
                "Horn 1981, Proceedings of the IEEE 69:14-47; Zevenbergen and Thorne 1987, "
                "Earth Surface Processes and Landforms 12:47-56. As gdaldem's aspect, also with "
                "-trigonometric and -zero_for_flat, to its rounding, where pixels are "
                "square: gdaldem looks at the differences alone, whatever the pixels' "
                "shape.",
            .notes =
                PB_TERRAIN_NOTES "  - aspect: {bands: {ASPECT: DEM}}\n"
                                 "  - aspect: {flat: zero, bands: {ASPECT: DEM}}\n"
                                 "  - aspect: {method: zevenbergen-thorne, bands: {ASPECT: DEM}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct aspect),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
