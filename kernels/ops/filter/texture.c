/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * texture: mean and spread of the values around a pixel. */
#include "kernels/expr/focal_args.h"
#include "kernels/focal/moments_pixel.h"
#include "kernels/graph/builder.h"

#include <string.h>

struct texture {
    int32_t size, edge;
    int32_t measure; /* enum pb_moment */
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    PB_KEY_FOCAL_SIZE(struct texture, "3"),
    {.name = "measure",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct texture, measure),
     .choices = "mean|variance|deviation|variation",
     .def = "deviation",
     .doc = "Of the neighbourhood: its mean, variance, standard deviation or coefficient of "
            "variation."},
    PB_KEY_FOCAL_EDGE(struct texture, "reflect"),
    PB_KEY_FOCAL_BANDS(struct texture),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct texture *const texture = params;
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_MOMENTS;
    focal.choice = texture->measure;
    focal.edge = pb_focal_args_edge(texture->edge);
    focal.radius = texture->size / 2;
    return pb_focal_args_define(&texture->bands, &focal, b);
}

static bool keeps_tags(const void *params)
{
    return ((const struct texture *)params)->measure == PB_MOMENT_MEAN;
}

static const struct pb_op_case cases[] = {
    {"deviation", "N", true, {{NULL, {{.text = NULL}}}}},
    {"mean 15 x 15",
     "N",
     true,
     {{"size", {{.text = "15", .num = 15}}}, {"measure", {{.text = "mean"}}}}},
    {"variance 7 x 7",
     "T",
     true,
     {{"size", {{.text = "7", .num = 7}}},
      {"measure", {{.text = "variance"}}},
      {"bands", {{.key = "T", .text = "N"}}}}},
    {"variation 9 x 9",
     "N",
     true,
     {{"size", {{.text = "9", .num = 9}}},
      {"measure", {{.text = "variation"}}},
      {"edge", {{.text = "clamp"}}}}},
};

const struct pb_op pb_op_texture = {
    .name = "texture",
    .doc =
        {
            .summary = "mean, variance, deviation or variation of a window",
            .formula = "Of n = size * size values: mean = sum / n; variance = (sum of squares - "
                       "sum * mean) / n, at least 0; deviation = sqrt(variance); variation = "
                       "deviation / mean. Sums are of float64.",
            .units = "mean, deviation: those of the band; variance: their square; variation: none.",
            .nodata =
                "A pixel is invalid where one of its neighbourhood is, and with edge: nodata where "
                "a part of it is outside the image. variation: also where the mean is 0.",
            .source = "First-order texture measures: Haralick 1979, Statistical and structural "
                      "approaches to texture, Proceedings of the IEEE 67:786-804.",
            .notes = "\n"
                     "  - texture: {size: 9, bands: {ROUGH: N}}\n"
                     "  - texture: {size: 7, measure: variation, bands: {CV: VV}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct texture),
    .keeps_tags = keeps_tags,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
