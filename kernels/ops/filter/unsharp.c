/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * unsharp: the unsharp mask. What a Gaussian takes away is added again, times the amount. */
#include "kernels/expr/band_list.h"
#include "kernels/expr/focal_args.h"
#include "kernels/graph/builder.h"

#include <math.h>
#include <string.h>

#define REACH 3 /* of the Gaussian, in standard deviations */

struct unsharp {
    double radius, amount, threshold;
    int32_t edge;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "radius",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct unsharp, radius),
     .min = 0.3,
     .max = 5,
     .def = "1",
     .doc = "Standard deviation of the Gaussian in pixels: how wide the detail is."},
    {.name = "amount",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct unsharp, amount),
     .min = 0,
     .max = 100,
     .def = "1",
     .doc = "How much of the detail is added: 1 = as much as there is."},
    {.name = "threshold",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct unsharp, threshold),
     .min = 0,
     .max = 1e9,
     .def = "0",
     .doc = "Pixels whose detail is smaller stay as they are, so that noise is not sharpened; in "
            "units of the band."},
    PB_KEY_FOCAL_EDGE(struct unsharp, "reflect"),
    PB_KEY_FOCAL_BANDS(struct unsharp),
};

static pb_value sharpened(struct pb_builder *b, const struct unsharp *u,
                          const struct pb_focal *smooth, pb_value x)
{
    const pb_value detail = pb_builder_emit(b, PB_VM_SUB, x, pb_builder_focal(b, smooth, x), -1);
    const pb_value more =
        pb_builder_emit(b, PB_VM_MUL, detail, pb_builder_constant(b, (float)u->amount), -1);
    const pb_value sharp = pb_builder_emit(b, PB_VM_ADD, x, more, -1);

    if (u->threshold <= 0)
        return sharp;
    return pb_builder_emit(b, PB_VM_WHERE,
                           pb_builder_emit(b, PB_VM_GE,
                                           pb_builder_emit(b, PB_VM_ABS, detail, -1, -1),
                                           pb_builder_constant(b, (float)u->threshold), -1),
                           sharp, x);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct unsharp *const u = params;
    const size_t n = pb_band_list_count(&u->bands, b);
    struct pb_focal smooth;
    int rc = 0;

    memset(&smooth, 0, sizeof smooth); /* all of it: equal operations are equal bytes */
    smooth.kind = PB_FOCAL_SEPARABLE;
    smooth.edge = pb_focal_args_edge(u->edge);
    smooth.radius = (int32_t)ceil(REACH * u->radius);
    pb_focal_args_gaussian(&smooth, u->radius);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&u->bands, b, i);

        rc = pb_builder_define(b, pick.out, sharpened(b, u, &smooth, pick.value));
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"radius 1", "N", true, {{NULL, {{.text = NULL}}}}},
    {"radius 5, threshold",
     "S",
     true,
     {{"radius", {{.text = "5", .num = 5}}},
      {"amount", {{.text = "0.5", .num = 0.5}}},
      {"threshold", {{.text = "0.02", .num = 0.02}}},
      {"bands", {{.key = "S", .text = "N"}}}}},
};

const struct pb_op pb_op_unsharp = {
    .name = "unsharp",
    .doc =
        {
            .summary = "sharpens bands by an unsharp mask",
            .formula = "x + amount * (x - g), where |x - g| is at least the threshold, else x; g: "
                       "x smoothed with a Gaussian of standard deviation radius, cut off at 3 "
                       "deviations, rounded up to whole pixels.",
            .units = "Those of the band. Nothing is clipped: results may be outside its range.",
            .nodata = "A pixel is invalid where one that the Gaussian reaches is, and with edge: "
                      "nodata where a part of it is outside the image.",
            .source =
                "The parameters are those of Pillow's UnsharpMask and, except for the threshold, "
                "of scikit-image's unsharp_mask; scipy.ndimage.gaussian_filter with "
                "truncate=3 and mode mirror gives g for whole numbers of 3 * radius.",
            .notes = "\n"
                     "  - unsharp: {radius: 1.5, amount: 0.8, bands: [R, G, B]}\n"
                     "  - unsharp: {radius: 2, threshold: 0.01, bands: {SHARP: PAN}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct unsharp),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
