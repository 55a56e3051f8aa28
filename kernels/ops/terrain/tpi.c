/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * tpi: topographic position index, as gdaldem and Wilson et al. 2007, Marine Geodesy 30:3-35, have
 * it, and of larger neighbourhoods. */
#include "kernels/expr/terrain_args.h"
#include "kernels/focal/relief_pixel.h"
#include "kernels/graph/builder.h"

#include <string.h>

struct tpi {
    int32_t size, edge;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    PB_KEY_FOCAL_SIZE(struct tpi, "3"),
    PB_KEY_RELIEF_EDGE(struct tpi),
    PB_KEY_FOCAL_BANDS(struct tpi),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct tpi *const tpi = params;
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_RELIEF;
    focal.choice = PB_RELIEF_POSITION;
    focal.edge = pb_focal_args_edge(tpi->edge);
    focal.radius = tpi->size / 2;
    return pb_focal_args_define(&tpi->bands, &focal, b);
}

static const struct pb_op_case cases[] = {
    {"3 x 3", "N", true, {{NULL, {{.text = NULL}}}}},
    {"11 x 11 clamped",
     "P",
     true,
     {{"size", {{.text = "11", .num = 11}}},
      {"edge", {{.text = "clamp"}}},
      {"bands", {{.key = "P", .text = "N"}}}}},
};

const struct pb_op pb_op_tpi = {
    .name = "tpi",
    .doc =
        {
            .summary = "topographic position index: a pixel less the mean around it",
            .formula = "The pixel less the mean of the other size * size - 1 pixels: above 0 on "
                       "ridges, below 0 in valleys.",
            .units = "Those of the band: metres for elevations in metres.",
            .nodata = PB_RELIEF_NODATA,
            .source = "Wilson et al. 2007, Marine Geodesy 30:3-35. With size 3 and edge nodata, "
                      "the defaults, it is the TPI of gdaldem.",
            .notes = "\n"
                     "  - tpi: {bands: {TPI: DEM}}\n"
                     "  - tpi: {size: 15, edge: reflect, bands: {RIDGE: DEM}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct tpi),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
