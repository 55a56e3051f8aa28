/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CELL_SHAPE_H
#define PB_CELL_SHAPE_H
/* Grid of cells (block_cache.h), and the cells that a tile touches. Pure integer arithmetic: any
 * thread. */
#include "kernels/view.h"

#include <stdint.h>

/* Grid of cells: cell (col, row) has the pixels from col * w to (col + 1) * w, and `overlap`
 * more pixels to the left and to the right, and the rows from row * h to (row + 1) * h, inside the
 * image. */
struct pb_cell_shape {
    int32_t image_w, image_h;
    int32_t w, h;
    int32_t overlap;
};

/* Fragments of a rect of the image, one per cell, numbered row by row. */
struct pb_cell_fragments {
    const struct pb_cell_shape *shape;
    struct pb_rect rect;
    int32_t col0, row0, cols, rows;
};

struct pb_cell_fragment {
    int32_t col, row; /* the cell */
    struct pb_rect rect;
};

/* Pixels of a cell, including the overlap; count for the largest cell. */
struct pb_rect pb_cell_rect(const struct pb_cell_shape *shape, int32_t col, int32_t row);
uint64_t pb_cell_px_max(const struct pb_cell_shape *shape);
/* shape is borrowed while the fragments are used. rect is inside the image. */
struct pb_cell_fragments pb_cell_fragments_of(const struct pb_cell_shape *shape,
                                              const struct pb_rect *rect);
struct pb_cell_fragment pb_cell_fragment(const struct pb_cell_fragments *fragments, uint32_t i);
#endif
