/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * bilateral: smooths where values are near each other and keeps edges. */
#include "kernels/expr/focal_args.h"
#include "kernels/focal/adaptive_pixel.h"
#include "kernels/graph/builder.h"

#include <math.h>
#include <string.h>

struct bilateral {
    int32_t size, edge;
    double range, sigma;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "range",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct bilateral, range),
     .min = 1e-12,
     .max = 1e12,
     .required = true,
     .doc = "Standard deviation of the weights over differences of values, in the band's units: "
            "edges much higher stay."},
    PB_KEY_FOCAL_SIZE(struct bilateral, "5"),
    {.name = "sigma",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct bilateral, sigma),
     .min = 0,
     .max = 100,
     .def = "0",
     .doc = "Standard deviation of the weights over distances, in pixels; 0: (size - 1) / 3."},
    PB_KEY_FOCAL_EDGE(struct bilateral, "reflect"),
    PB_KEY_FOCAL_BANDS(struct bilateral),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct bilateral *const bilateral = params;
    const int side = bilateral->size, radius = side / 2;
    const double sigma = bilateral->sigma > 0 ? bilateral->sigma : (side - 1) / 3.0;
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_ADAPTIVE;
    focal.choice = PB_ADAPTIVE_BILATERAL;
    focal.edge = pb_focal_args_edge(bilateral->edge);
    focal.radius = radius;
    focal.strength = (float)(0.5 / (bilateral->range * bilateral->range));
    for (int y = -radius; y <= radius; y++)
        for (int x = -radius; x <= radius; x++)
            focal.weight[(y + radius) * side + x + radius] =
                (float)exp(-(x * x + y * y) / (2 * sigma * sigma));
    return pb_focal_args_define(&bilateral->bands, &focal, b);
}

static const struct pb_op_case cases[] = {
    {"5 x 5", "N", true, {{"range", {{.text = "50", .num = 50}}}}},
    {"15 x 15",
     "F",
     true,
     {{"range", {{.text = "0.05", .num = 0.05}}},
      {"size", {{.text = "15", .num = 15}}},
      {"bands", {{.key = "F", .text = "N"}}}}},
    {"3 x 3 clamped",
     "N",
     true,
     {{"range", {{.text = "5", .num = 5}}},
      {"size", {{.text = "3", .num = 3}}},
      {"edge", {{.text = "clamp"}}}}},
};

const struct pb_op pb_op_bilateral = {
    .name = "bilateral",
    .doc =
        {
            .summary = "smooths bands and keeps their edges",
            .formula =
                "The mean of size * size values v weighted by exp(-distance^2 / (2 sigma^2)) * "
                "exp(-(v - value)^2 / (2 range^2)), value being that of the pixel; the second "
                "factor is at least exp(-87).",
            .units = "Those of the band.",
            .nodata = "A pixel is invalid where one of its neighbourhood is, and with edge: nodata "
                      "where a part of it is outside the image.",
            .source = "C. Tomasi and R. Manduchi, Bilateral Filtering for Gray and Color Images, "
                      "Proceedings of the IEEE International Conference on Computer Vision 1998.",
            .notes = "\n"
                     "  - bilateral: {range: 0.02, bands: [R, N]}\n"
                     "  - bilateral: {range: 5, size: 9, sigma: 2, bands: {SMOOTH: DEM}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct bilateral),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
