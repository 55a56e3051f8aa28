/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * roughness: the range of the elevations around a pixel. Of 3 x 3 pixels, and without data at the
 * image's edge, it is that of gdaldem: Wilson et al. 2007, Marine Geodesy 30:3-35. */
#include "kernels/expr/terrain_args.h"
#include "kernels/focal/extreme_pixel.h"
#include "kernels/graph/builder.h"

#include <string.h>

struct roughness {
    int32_t size, edge;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    PB_KEY_FOCAL_SIZE(struct roughness, "3"),
    PB_KEY_RELIEF_EDGE(struct roughness),
    PB_KEY_FOCAL_BANDS(struct roughness),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct roughness *const roughness = params;
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_EXTREME;
    focal.choice = PB_EXTREME_RANGE;
    focal.edge = pb_focal_args_edge(roughness->edge);
    focal.radius = roughness->size / 2;
    return pb_focal_args_define(&roughness->bands, &focal, b);
}

static const struct pb_op_case cases[] = {
    {"3 x 3", "N", true, {{NULL, {{.text = NULL}}}}},
    {"7 x 7 reflected",
     "N",
     true,
     {{"size", {{.text = "7", .num = 7}}},
      {"edge", {{.text = "reflect"}}},
      {"bands", {{.text = "R"}, {.text = "N"}}}}},
    {"5 x 5 extrapolated",
     "N",
     true,
     {{"size", {{.text = "5", .num = 5}}}, {"edge", {{.text = "extrapolate"}}}}},
};

const struct pb_op pb_op_roughness = {
    .name = "roughness",
    .doc =
        {
            .summary = "range of the values around each pixel: roughness of terrain",
            .formula = "The greatest less the least value of size * size pixels.",
            .units = "Those of the band: metres for elevations in metres.",
            .nodata = PB_RELIEF_NODATA,
            .source =
                "Wilson et al. 2007, Marine Geodesy 30:3-35. With size 3 and edge nodata, the "
                "defaults, it is the roughness of gdaldem.",
            .notes = "\n"
                     "  - roughness: {bands: {ROUGHNESS: DEM}}\n"
                     "  - roughness: {size: 5, edge: reflect, bands: {RELIEF: DEM}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct roughness),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
