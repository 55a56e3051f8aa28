/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CELL_SHAPE_H
#define PB_CELL_SHAPE_H
/* The grid of cells (block_cache.h), and which of them a tile touches. Pure integer arithmetic: any
 * thread. */
#include "kernels/view.h"

#include <stdint.h>

/* The grid of cells: cell (col, row) holds the pixels from col * w to (col + 1) * w, and `overlap`
 * pixels more to the left and to the right, by rows from row * h to (row + 1) * h, inside the
 * image. */
struct pb_cell_shape {
    int32_t image_w, image_h;
    int32_t w, h;
    int32_t overlap;
};

/* The fragments that a rect of the image consists of, one per cell, numbered row by row. */
struct pb_cell_fragments {
    const struct pb_cell_shape *shape;
    struct pb_rect rect;
    int32_t col0, row0, cols, rows;
};

struct pb_cell_fragment {
    int32_t col, row; /* the cell */
    struct pb_rect rect;
};

/* Pixels of a cell, overlap included; of the largest cell there is. */
struct pb_rect pb_cell_rect(const struct pb_cell_shape *shape, int32_t col, int32_t row);
uint64_t pb_cell_px_max(const struct pb_cell_shape *shape);
/* shape is borrowed while the fragments are used. rect lies inside the image. */
struct pb_cell_fragments pb_cell_fragments_of(const struct pb_cell_shape *shape,
                                              const struct pb_rect *rect);
struct pb_cell_fragment pb_cell_fragment(const struct pb_cell_fragments *fragments, uint32_t i);
#endif
