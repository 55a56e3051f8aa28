/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SPECKLE_ARGS_H
#define PB_SPECKLE_ARGS_H
/* What speckle filters share: how strong the speckle is, as their parameters `looks` and `data`
 * say, and Lee's estimate. During an operator's build() only. */
#include "kernels/graph/builder.h"

/* Rows for members double looks and int32_t data of the operator's struct. */
#define PB_KEY_SPECKLE_LOOKS(params)                                                               \
    {                                                                                              \
        .name = "looks", .type = PB_KEY_NUMBER, .offset = offsetof(params, looks), .min = 0.1,     \
        .max = 10000, .def = "1", .doc = "Equivalent number of looks of the data."                 \
    }
#define PB_KEY_SPECKLE_DATA(params)                                                                \
    {                                                                                              \
        .name = "data", .type = PB_KEY_CHOICE, .offset = offsetof(params, data),                   \
        .def = "intensity", .choices = "intensity|amplitude",                                      \
        .doc = "Intensity (power) or amplitude (its square root), never decibels."                 \
    }

/* The formula that Lee's filters document. */
#define PB_SPECKLE_FORMULA                                                                         \
    "mean + k * (value - mean), k = max(0, variance - mean^2 * c) / ((1 + c) * variance); c, the " \
    "squared coefficient of variation of speckle, is 1 / looks of intensity and (4 / pi - 1) / "   \
    "looks of amplitude."

/* 10 * log10(x), of a power; invalid for 0 and less. */
pb_value pb_decibel(struct pb_builder *b, pb_value x);

/* c above. data: the index in the choices of PB_KEY_SPECKLE_DATA. */
float pb_speckle_args_noise(double looks, int32_t data);
/* Defines Lee's estimate for each entry of `bands`, from the mean and the variance that a kind of
 * focal operations (MOMENTS or DIRECTIONAL) makes of windows of `size` pixels a side. */
int pb_speckle_args_define(struct pb_builder *b, const struct pb_items *bands,
                           enum pb_focal_kind kind, int32_t size, enum pb_edge edge, float noise);
#endif
