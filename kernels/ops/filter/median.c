/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * median: the median of the values around a pixel, or another percentile of them. */
#include "kernels/expr/focal_args.h"
#include "kernels/graph/builder.h"

#include <string.h>

struct median {
    int32_t size, edge;
    double percentile;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    PB_KEY_FOCAL_SIZE(struct median, "3"),
    {.name = "percentile",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct median, percentile),
     .min = 0,
     .max = 100,
     .def = "50",
     .doc = "Which value in ascending order: 50 the median, 0 the least, 100 the greatest."},
    PB_KEY_FOCAL_EDGE(struct median, "reflect"),
    PB_KEY_FOCAL_BANDS(struct median),
};

static int32_t rank_of(double percentile, int32_t size)
{
    const int32_t n = size * size, rank = (int32_t)(n * percentile / 100.0);

    return rank < n ? rank : n - 1;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct median *const median = params;
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_RANK;
    focal.choice = rank_of(median->percentile, median->size);
    focal.edge = pb_focal_args_edge(median->edge);
    focal.radius = median->size / 2;
    return pb_focal_args_define(&median->bands, &focal, b);
}

static const struct pb_op_case cases[] = {
    {"3 x 3", "N", true, {{NULL, {{.text = NULL}}}}},
    {"5 x 5", "N", true, {{"size", {{.text = "5", .num = 5}}}}},
    {"7 x 7", "N", true, {{"size", {{.text = "7", .num = 7}}}}},
    {"7 x 7, 90 %",
     "N",
     true,
     {{"size", {{.text = "7", .num = 7}}},
      {"percentile", {{.text = "90", .num = 90}}},
      {"edge", {{.text = "nodata"}}}}},
    {"15 x 15",
     "M",
     true,
     {{"size", {{.text = "15", .num = 15}}},
      {"edge", {{.text = "clamp"}}},
      {"bands", {{.key = "M", .text = "N"}}}}},
};

const struct pb_op pb_op_median = {
    .name = "median",
    .doc =
        {
            .summary = "median or another percentile of the values around each pixel",
            .formula = "Of the n = size * size values in ascending order, counted from 0, that "
                       "with the number floor(n * percentile / 100), the last one for 100.",
            .units = "Those of the band. Each result is a value of the neighbourhood.",
            .nodata = "A pixel is invalid where one of its neighbourhood is, and with edge: nodata "
                      "where a part of it is outside the image.",
            .source = "J. W. Tukey, Exploratory Data Analysis, Addison-Wesley 1977. The numbers "
                      "are those of percentile_filter in scipy.ndimage, whose mode mirror is "
                      "edge: reflect, and nearest edge: clamp.",
            .notes = "\n"
                     "  - median: {bands: {SMOOTH: VV}}\n"
                     "  - median: {size: 5, percentile: 90, edge: nodata, bands: [R, N]}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct median),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
