/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOCAL_ARGS_H
#define PB_FOCAL_ARGS_H
/* Parameters that focal operators share: `size`, `edge` and `bands`. During an operator's build()
 * only. */
#include "kernels/graph/builder.h"

#define PB_PARAM_FOCAL_EDGE(def_)                                                                  \
    {                                                                                              \
        .name = "edge", .type = PB_PARAM_ENUM, .def = def_, .choices = "reflect|clamp|nodata",     \
        .doc = "what stands for pixels outside the image"                                          \
    }
#define PB_PARAM_FOCAL_BANDS                                                                       \
    {                                                                                              \
        .name = "bands", .type = PB_PARAM_NAMES, .makes_bands = true,                              \
        .doc = "bands to replace, or {NEW: BAND}; all bands unless given"                          \
    }

/* The rule that `edge` names; without one the first of the choices. */
enum pb_edge pb_focal_args_edge(const struct pb_arg *edge);
/* Half of `size`, rounded down; -EINVAL after a report unless it is odd and 3 to PB_FOCAL_SIDE_MAX.
 * step: the operator's name, for the message. */
int pb_focal_args_radius(const struct pb_arg *size, const char *step, struct pb_builder *b);
/* Defines what the operation makes of each entry of `bands`; poison when it is NULL. */
int pb_focal_args_define(const struct pb_arg *bands, const struct pb_focal *focal,
                         struct pb_builder *b);
#endif
