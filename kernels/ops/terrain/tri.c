/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * tri: terrain ruggedness index, in both definitions that gdaldem has, and of larger
 * neighbourhoods. */
#include "kernels/expr/terrain_args.h"
#include "kernels/focal/relief_pixel.h"
#include "kernels/graph/builder.h"

#include <string.h>

struct tri {
    int32_t method, size, edge;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "method",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct tri, method),
     .choices = "riley|wilson",
     .def = "riley",
     .doc = "riley: root of the sum of the squared differences, for land; wilson: mean of the "
            "absolute differences, for the sea floor."},
    PB_KEY_FOCAL_SIZE(struct tri, "3"),
    PB_KEY_RELIEF_EDGE(struct tri),
    PB_KEY_FOCAL_BANDS(struct tri),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct tri *const tri = params;
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_RELIEF;
    focal.choice = tri->method == 0 ? PB_RELIEF_ROOT : PB_RELIEF_MEAN;
    focal.edge = pb_focal_args_edge(tri->edge);
    focal.radius = tri->size / 2;
    return pb_focal_args_define(&tri->bands, &focal, b);
}

static const struct pb_op_case cases[] = {
    {"riley", "N", true, {{NULL, {{.text = NULL}}}}},
    {"wilson, 5 x 5 reflected",
     "T",
     true,
     {{"method", {{.text = "wilson"}}},
      {"size", {{.text = "5", .num = 5}}},
      {"edge", {{.text = "reflect"}}},
      {"bands", {{.key = "T", .text = "N"}}}}},
    {"extrapolated", "N", true, {{"edge", {{.text = "extrapolate"}}}}},
};

const struct pb_op pb_op_tri = {
    .name = "tri",
    .doc =
        {
            .summary = "terrain ruggedness index: differences from the pixels around",
            .formula = "Of the differences d between the pixel and the other size * size - 1: "
                       "riley: sqrt(sum of d^2); wilson: mean of |d|.",
            .units = "Those of the band: metres for elevations in metres.",
            .nodata = PB_RELIEF_NODATA,
            .source = "Riley et al. 1999, Intermountain Journal of Sciences 5:23-27; Wilson et al. "
                      "2007, Marine Geodesy 30:3-35. With size 3 and edge nodata, the defaults, it "
                      "is the TRI of gdaldem with -alg Riley or Wilson.",
            .notes = "riley is a sum: it grows with size.\n"
                     "\n"
                     "  - tri: {bands: {TRI: DEM}}\n"
                     "  - tri: {method: wilson, bands: {TRI: BATHYMETRY}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct tri),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
