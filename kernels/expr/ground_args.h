/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GROUND_ARGS_H
#define PB_GROUND_ARGS_H
/* How large the units of a grid's coordinates are on the ground, pixel by pixel. During an
 * operator's build() only. */
#include "kernels/graph/builder.h"

/* Of the coordinate system that the grid lies in. */
const struct pb_ground_unit *pb_ground_args_unit(const struct pb_builder *b, int32_t grid);

/* Units of x and y (axis 0, 1) that a metre on the ground has at each pixel, of a law that depends
 * on y; transform: of the grid. Invalid within 6 m of a pole, and beyond. */
pb_value pb_ground_args_per_metre(struct pb_builder *b, int32_t grid, const double transform[6],
                                  int axis);
#endif
