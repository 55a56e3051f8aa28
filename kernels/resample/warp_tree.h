/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WARP_TREE_H
#define PB_WARP_TREE_H
#include "kernels/resample/warp.h"

/* Fills tree, leaves and boxes of a warp whose sizes are known. 0; -ENOMEM; -E2BIG. */
int pb_warp_fill(struct pb_warp *warp, pb_warp_points *points, void *of,
                 const struct pb_warp_want *want);
/* Fills most, from the boxes. 0; -ENOMEM. */
int pb_warp_find_most(struct pb_warp *warp);
/* Boxes of one of several heights: what holds the positions of ground between these. */
void pb_warp_join_boxes(struct pb_warp *warp);
#endif
