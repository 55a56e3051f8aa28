/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * frost: Frost's speckle filter, whose weights decay the faster the more the window varies. */
#include "kernels/expr/focal_args.h"
#include "kernels/focal/adaptive_pixel.h"
#include "kernels/graph/builder.h"

#include <math.h>
#include <string.h>

struct frost {
    int32_t size, edge;
    double damping;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    PB_KEY_FOCAL_SIZE(struct frost, "5"),
    {.name = "damping",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct frost, damping),
     .min = 0,
     .max = 1000,
     .def = "1",
     .doc = "How fast weights decay; the larger, the less is smoothed."},
    PB_KEY_FOCAL_EDGE(struct frost, "reflect"),
    PB_KEY_FOCAL_BANDS(struct frost),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct frost *const frost = params;
    const int side = frost->size, radius = side / 2;
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_ADAPTIVE;
    focal.choice = PB_ADAPTIVE_FROST;
    focal.edge = pb_focal_args_edge(frost->edge);
    focal.radius = radius;
    focal.strength = (float)frost->damping;
    for (int y = -radius; y <= radius; y++)
        for (int x = -radius; x <= radius; x++)
            focal.weight[(y + radius) * side + x + radius] = (float)sqrt(x * x + y * y);
    return pb_focal_args_define(&frost->bands, &focal, b);
}

static const struct pb_op_case cases[] = {
    {"5 x 5", "N", true, {{NULL, {{.text = NULL}}}}},
    {"11 x 11",
     "F",
     true,
     {{"size", {{.text = "11", .num = 11}}},
      {"damping", {{.text = "2.5", .num = 2.5}}},
      {"bands", {{.key = "F", .text = "N"}}}}},
};

const struct pb_op pb_op_frost = {
    .name = "frost",
    .doc =
        {
            .summary = "Frost's speckle filter for radar images",
            .formula = "The mean of size * size values weighted by exp(-damping * variance / "
                       "mean^2 * distance), variance and mean those of the same values, distance "
                       "from the pixel in pixels; no weight is below exp(-87).",
            .units = "Those of the band.",
            .nodata = "A pixel is invalid where one of its neighbourhood is, and with edge: nodata "
                      "where a part of it is outside the image.",
            .source = "V. S. Frost et al., A Model for Radar Images and Its Application to "
                      "Adaptive Digital Filtering of Multiplicative Noise, IEEE Transactions on "
                      "Pattern Analysis and Machine Intelligence 4 (1982), 157-166. The same as "
                      "speck_frost of RAT.",
            .notes = "\n"
                     "  - frost: {bands: [VV, VH]}\n"
                     "  - frost: {size: 7, damping: 2, bands: {SMOOTH: VV}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct frost),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
