/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * refined_lee: Lee's speckle filter with mean and variance of the half of the window that lies on
 * the pixel's side of an edge. */
#include "kernels/expr/focal_args.h"
#include "kernels/expr/speckle_args.h"

struct refined_lee {
    int32_t size, edge, data;
    double looks;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "size",
     .type = PB_KEY_ODD,
     .offset = offsetof(struct refined_lee, size),
     .min = 5,
     .max = PB_FOCAL_WINDOW_SIDE_MAX,
     .def = "7",
     .doc = "Side of the neighbourhood in pixels, odd."},
    PB_KEY_SPECKLE_LOOKS(struct refined_lee),
    PB_KEY_SPECKLE_DATA(struct refined_lee),
    PB_KEY_FOCAL_EDGE(struct refined_lee, "reflect"),
    PB_KEY_FOCAL_BANDS(struct refined_lee),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct refined_lee *const lee = params;

    return pb_speckle_args_define(b, &lee->bands, PB_FOCAL_DIRECTIONAL, lee->size,
                                  pb_focal_args_edge(lee->edge),
                                  pb_speckle_args_noise(lee->looks, lee->data));
}

static const struct pb_op_case cases[] = {
    {"7 x 7", "N", true, {{NULL, {{.text = NULL}}}}},
    {"5 x 5, amplitude",
     "F",
     true,
     {{"size", {{.text = "5", .num = 5}}},
      {"data", {{.text = "amplitude"}}},
      {"bands", {{.key = "F", .text = "N"}}}}},
    {"11 x 11, 40 looks",
     "N",
     true,
     {{"size", {{.text = "11", .num = 11}}},
      {"looks", {{.text = "40", .num = 40}}},
      {"edge", {{.text = "nodata"}}}}},
};

const struct pb_op pb_op_refined_lee = {
    .name = "refined_lee",
    .doc =
        {
            .summary = "Lee's speckle filter for radar images with windows along edges",
            .formula = PB_SPECKLE_FORMULA
            " Mean and variance are of half a window of size * size pixels. Nine areas in it, "
            "of side 2 * floor(size / 4) + 1 and as far apart as they fit, have sums: the pair "
            "of opposite ones that differs most shows the direction of the edge; the one of them "
            "that is nearer to the area in the middle shows the pixel's side of it. The half has "
            "the pixels of that side and of the line.",
            .units = "Those of the band.",
            .nodata = "A pixel is invalid where one of its neighbourhood is, and with edge: nodata "
                      "where a part of it is outside the image.",
            .source = "J.-S. Lee, Refined Filtering of Image Noise Using Local Statistics, "
                      "Computer Graphics and Image Processing 15 (1981), 380-389. Of 7 * 7 pixels "
                      "the halves are those of SNAP, which estimates the speckle from the window "
                      "and has no looks.",
            .notes = "\n"
                     "  - refined_lee: {looks: 4.4, bands: [VV, VH]}\n"
                     "  - refined_lee: {size: 9, data: amplitude, bands: {SMOOTH: VV}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct refined_lee),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
