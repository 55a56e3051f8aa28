/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * lee: Lee's speckle filter, from mean and variance of a square window. */
#include "kernels/expr/focal_args.h"
#include "kernels/expr/speckle_args.h"

struct lee {
    int32_t size, edge, data;
    double looks;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    PB_KEY_FOCAL_SIZE(struct lee, "7"), PB_KEY_SPECKLE_LOOKS(struct lee),
    PB_KEY_SPECKLE_DATA(struct lee),    PB_KEY_FOCAL_EDGE(struct lee, "reflect"),
    PB_KEY_FOCAL_BANDS(struct lee),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct lee *const lee = params;

    return pb_speckle_args_define(b, &lee->bands, PB_FOCAL_MOMENTS, lee->size,
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
};

const struct pb_op pb_op_lee = {
    .name = "lee",
    .doc =
        {
            .summary = "Lee's speckle filter for radar images",
            .formula = PB_SPECKLE_FORMULA " Mean and variance are of size * size pixels.",
            .units = "Those of the band.",
            .nodata = "A pixel is invalid where one of its neighbourhood is, and with edge: nodata "
                      "where a part of it is outside the image.",
            .source = "J.-S. Lee, Digital Image Enhancement and Noise Filtering by Use of Local "
                      "Statistics, IEEE Transactions on Pattern Analysis and Machine Intelligence "
                      "2 (1980), 165-168: the estimate of least mean square error for "
                      "multiplicative noise. The same as speck_lee of RAT, and as filter kuan of "
                      "OTB's Despeckle, which "
                      "divides the variance by the number of pixels less 1.",
            .notes = "\n"
                     "  - lee: {looks: 4.4, bands: [VV, VH]}\n"
                     "  - lee: {size: 5, looks: 1, data: amplitude, bands: {SMOOTH: VV}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct lee),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
