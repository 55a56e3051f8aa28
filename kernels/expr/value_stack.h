/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VALUE_STACK_H
#define PB_VALUE_STACK_H
/* What several values make at a pixel, of those that are valid there: their mean, their median, how
 * many they are. During an operator's build() only. */
#include "kernels/graph/builder.h"

#include <stddef.h>

#define PB_VALUE_STACK_MAX 64

enum pb_stack_measure {
    PB_STACK_COUNT, /* 0 where none is valid; the others are invalid there */
    PB_STACK_MEAN,
    PB_STACK_MIN,
    PB_STACK_MAX,
    PB_STACK_RANKED /* at `share` of the way from the least to the greatest, between two of them in
                       proportion */
};

/* x: 1 .. PB_VALUE_STACK_MAX values of one grid. share: 0 .. 1. Float32, in the order of x. */
pb_value pb_value_stack(struct pb_builder *b, enum pb_stack_measure measure, double share,
                        const pb_value *x, size_t n);
#endif
