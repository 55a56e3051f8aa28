/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WARP_TREE_H
#define PB_WARP_TREE_H
#include "kernels/resample/warp.h"

/* All 5 x 5 positions of a square, row by row. */
struct pb_warp_lattice {
    double x[5][5], y[5][5];
};

/* A pixel of the new grid whose positions jump. */
struct pb_warp_torn {
    double x, y; /* its upper left corner */
    size_t more; /* entry of the tree that takes the first of its pieces; the next: their number */
};

/* Fills side, cols and rows of a warp whose size is known. */
void pb_warp_lay(struct pb_warp *warp);
/* Fills tree and leaves of a warp whose sizes are known. 0; -ENOMEM; -E2BIG. */
int pb_warp_fill(struct pb_warp *warp, pb_warp_points *points, void *of,
                 const struct pb_warp_want *want);
/* Whether positions of a square's lattice lie on two sides of a jump. */
bool pb_warp_lattice_is_torn(const struct pb_warp_lattice *all);
/* The pieces of the footprints of torn pixels. 0; -ENOMEM. */
int pb_warp_make_pieces(struct pb_warp *warp, pb_warp_points *points, void *of,
                        const struct pb_warp_torn *torn, size_t n);
/* Fills most, from the boxes. 0; -ENOMEM. */
int pb_warp_find_most(struct pb_warp *warp);
/* Boxes of one of several heights: what holds the positions of ground between these. */
void pb_warp_join_boxes(struct pb_warp *warp);
#endif
