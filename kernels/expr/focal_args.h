/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOCAL_ARGS_H
#define PB_FOCAL_ARGS_H
/* Parameters that focal operators share: `size`, `edge` and `bands`. During an operator's build()
 * only. */
#include "kernels/graph/builder.h"

/* Rows for members int32_t size, int32_t edge and struct pb_items bands of the operator's struct.
 */
#define PB_KEY_FOCAL_SIZE(params, def_)                                                            \
    {                                                                                              \
        .name = "size", .type = PB_KEY_ODD, .offset = offsetof(params, size), .min = 3,            \
        .max = PB_FOCAL_WINDOW_SIDE_MAX, .def = def_,                                              \
        .doc = "Side of the neighbourhood in pixels, odd."                                         \
    }
#define PB_KEY_FOCAL_EDGE(params, def_)                                                            \
    {                                                                                              \
        .name = "edge", .type = PB_KEY_CHOICE, .offset = offsetof(params, edge), .def = def_,      \
        .choices = "reflect|clamp|nodata", .doc = "Values used for pixels outside the image."      \
    }
#define PB_KEY_FOCAL_BANDS(params)                                                                 \
    {                                                                                              \
        .name = "bands", .type = PB_KEY_NAMES, .offset = offsetof(params, bands),                  \
        .makes_bands = true, .doc = "Bands to replace, or {NEW: BAND}; all bands unless given."    \
    }

/* The rule that a choice of `edge` names. */
enum pb_edge pb_focal_args_edge(int32_t edge);
/* Weights of a Gaussian that add up to 1, along x and y of the focal operation's radius. sigma in
 * pixels; 0: that of OpenCV's getGaussianKernel. */
void pb_focal_args_gaussian(struct pb_focal *focal, double sigma);
/* Defines what the operation makes of each entry of `bands`; poison when it is NULL. */
int pb_focal_args_define(const struct pb_items *bands, const struct pb_focal *focal,
                         struct pb_builder *b);
#endif
