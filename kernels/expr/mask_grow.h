/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MASK_GROW_H
#define PB_MASK_GROW_H
/* The pixels that a mask drops, grown. Any thread, a builder each. */
#include "kernels/graph/builder.h"

/* drop: 1, 0 or invalid. What is 1 within `grow` pixels of it becomes 1, over a disc or a square; a
 * focal operation for each 7 pixels. Invalid pixels neither grow nor are grown over: they stay
 * invalid. */
pb_value pb_mask_grown(struct pb_builder *b, pb_value drop, int32_t grow, bool square);
#endif
