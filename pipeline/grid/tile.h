/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_H
#define PB_TILE_H
/* Tile geometry: an image split into square tiles, and their visiting order. Pure integer
 * arithmetic: no allocation, no I/O, no locks; every function may be called from any thread. */
#include "kernels/view.h"

#include <stdbool.h>
#include <stdint.h>

/* Tiles are numbered row-major. side_px is a multiple of every product's block size. */
struct pb_grid {
    int32_t image_w, image_h;
    int32_t side_px;
    int32_t cols, rows;
    /* For PB_ORDER_ROWS, in tiles; 0 = up to the image's width. Set after pb_grid_init(). */
    int32_t stripe_cols; /* columns of a stripe; stripes are visited one after the other */
    int32_t unit_cols;   /* tiles of a unit along a row of the stripe */
};

/* 0, or -EINVAL for an empty image or a side below 1. */
int pb_grid_init(struct pb_grid *grid, int32_t image_w, int32_t image_h, int32_t side_px);
uint32_t pb_grid_count(const struct pb_grid *grid);
/* Columns of tiles in a stripe: all if not set. */
int32_t pb_grid_stripe_cols(const struct pb_grid *grid);
/* Core of tile i, clipped to the image. i < count. */
struct pb_rect pb_grid_core(const struct pb_grid *grid, uint32_t i);

/* Visiting order of tiles: `units` of consecutive tiles, each for one reader. By rows,
 * within stripes if the image is too wide to keep a row of it (pixels that neighbours share are
 * decoded once), or along a Z curve (2x2 tiles a unit: parents in a pyramid complete early,
 * whatever the image's size). */
enum pb_order { PB_ORDER_ROWS, PB_ORDER_Z };
uint32_t pb_order_units(const struct pb_grid *grid, enum pb_order order);
/* Tiles of unit u in visiting order; out_tiles holds pb_order_unit_max() numbers. Returns their
 * count (0 is possible on the Z curve outside the image). */
uint32_t pb_order_unit(const struct pb_grid *grid, enum pb_order order, uint32_t u,
                       uint32_t *out_tiles);
uint32_t pb_order_unit_max(const struct pb_grid *grid, enum pb_order order);
/* Index in the visiting order of the tile at that column and row. Never decreases when the
 * column or the row grows: in a rectangle of tiles the upper left one is visited first, the lower
 * right one last. */
uint32_t pb_order_position(const struct pb_grid *grid, enum pb_order order, uint32_t col,
                           uint32_t row);
/* Steps from a tile of a unit to the next one in the visiting order. Returns false after the last
 * tile. */
bool pb_order_next(const struct pb_grid *grid, enum pb_order order, uint32_t *unit,
                   uint32_t *number);
#endif
