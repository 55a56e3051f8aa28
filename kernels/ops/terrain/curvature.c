/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * curvature: how terrain bends, down the slope, along the contour or in all. Signs and unit are
 * those of ArcGIS and RichDEM: Zevenbergen and Thorne 1987 have the opposite sign down the slope.
 */
#include "kernels/expr/terrain_args.h"

struct curvature {
    struct pb_terrain terrain;
    int32_t kind, unit;
    struct pb_items bands;
};

enum kind { TOTAL, PROFILE, PLAN };

static const struct pb_key keys[] = {
    {.name = "kind",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct curvature, kind),
     .choices = "total|profile|plan",
     .def = "total",
     .doc = "profile: down the slope, above 0 where it is concave; plan: along the contour, above "
            "0 where it is convex; total: plan less profile, above 0 where the ground is convex."},
    {.name = "unit",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct curvature, unit),
     .choices = "per-100-metres|per-metre",
     .def = "per-100-metres",
     .doc = "Of the result: 1/100 m, as ArcGIS and RichDEM have it, or 1/m."},
    PB_KEY_TERRAIN_FACTOR(struct curvature),
    PB_KEY_TERRAIN_PIXEL(struct curvature),
    PB_KEY_TERRAIN_EDGE(struct curvature),
    PB_KEY_FOCAL_BANDS(struct curvature),
};

static pb_value times(struct pb_builder *b, pb_value x, pb_value y)
{
    return pb_builder_emit(b, PB_VM_MUL, x, y, -1);
}

/* The second derivative along the direction (x, y) times the square of its length. */
static pb_value along(struct pb_builder *b, const struct pb_terrain_bend *bend, pb_value x,
                      pb_value y)
{
    const pb_value both = times(b, times(b, x, y), bend->both);
    const pb_value sum = pb_builder_emit(b, PB_VM_ADD, times(b, times(b, x, x), bend->east),
                                         times(b, times(b, y, y), bend->north), -1);

    return pb_builder_emit(b, PB_VM_ADD, sum, pb_builder_emit(b, PB_VM_ADD, both, both, -1), -1);
}

static pb_value curvature_of(const void *params, struct pb_builder *b,
                             const struct pb_terrain_slope *rise)
{
    const struct curvature *const curvature = params;
    const double sign = curvature->kind == PROFILE ? 1.0 : -1.0;
    const double unit = curvature->unit == 0 ? 100.0 : 1.0;
    const pb_value scale = pb_builder_constant(b, (float)(sign * unit));
    const pb_value zero = pb_builder_constant(b, 0.0f);
    const struct pb_terrain_bend bend = pb_terrain_args_bend(b, rise);

    if (curvature->kind == TOTAL)
        return times(b, pb_builder_emit(b, PB_VM_ADD, bend.east, bend.north, -1), scale);
    const pb_value square = pb_terrain_args_square(b, rise);
    const pb_value west = pb_builder_emit(b, PB_VM_NEG, rise->east, -1, -1);
    const pb_value value = curvature->kind == PROFILE ? along(b, &bend, rise->east, rise->north)
                                                      : along(b, &bend, rise->north, west);
    const pb_value ratio = pb_builder_emit(b, PB_VM_DIV, value, square, -1);
    const pb_value level = pb_builder_emit(b, PB_VM_EQ, square, zero, -1);

    return pb_builder_emit(b, PB_VM_WHERE, level, zero, times(b, ratio, scale));
}

static int build(const void *params, struct pb_builder *b)
{
    const struct curvature *const curvature = params;
    struct pb_terrain terrain = curvature->terrain;

    terrain.method = PB_TERRAIN_ZEVENBERGEN_THORNE;
    return pb_terrain_args_define(&terrain, &curvature->bands, curvature_of, curvature, b);
}

static const struct pb_op_case cases[] = {
    {"total", "N", true, {{NULL, {{.text = NULL}}}}},
    {"profile, reflected",
     "C",
     true,
     {{"kind", {{.text = "profile"}}},
      {"edge", {{.text = "reflect"}}},
      {"bands", {{.key = "C", .text = "N"}}}}},
    {"plan, per metre",
     "N",
     true,
     {{"kind", {{.text = "plan"}}},
      {"unit", {{.text = "per-metre"}}},
      {"pixel", {{.text = "10", .num = 10}}}}},
};

const struct pb_op pb_op_curvature = {
    .name = "curvature",
    .doc =
        {
            .summary = "profile, plan and total curvature of terrain from elevations",
            .formula =
                "e, n the rise towards east and north, ee, nn, en their derivatives. total: -(ee + "
                "nn). profile: (ee * e^2 + 2 * en * e * n + nn * n^2) / (e^2 + n^2). plan: -(ee * "
                "n^2 - 2 * en * e * n + nn * e^2) / (e^2 + n^2). profile and plan of level ground "
                "are 0.",
            .units = "1/100 m (100 times 1/m), or 1/m.",
            .nodata = PB_TERRAIN_NODATA,
            .source =
                "Zevenbergen and Thorne 1987, Earth Surface Processes and Landforms 12:47-56, with "
                "the signs and the unit of ArcGIS's Curvature and of RichDEM: their D, E, F, G, H "
                "are ee / 2, nn / 2, en, e, n.",
            .notes = PB_TERRAIN_NOTES "  - curvature: {bands: {CURVATURE: DEM}}\n"
                                      "  - curvature: {kind: profile, bands: {PROFILE: DEM}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct curvature),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
