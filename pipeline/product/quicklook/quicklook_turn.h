/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUICKLOOK_TURN_H
#define PB_QUICKLOOK_TURN_H
/* North up: selects, of the eight combinations of turning and mirroring a picture by whole
 * pixels, the one that brings north nearest to its top and east to its right. Pure; any thread. */
#include "pipeline/raster/raster.h"

struct pb_turn {
    bool transposed;           /* rows and columns are exchanged, before the flips */
    bool flip_rows, flip_cols; /* flips of the picture */
};

/* Returns "as stored" if the direction of north is unknown. */
struct pb_turn pb_turn_of(const struct pb_raster_info *info);
/* Index of the stored pixel at column x and row y of a picture of w x h (of the picture); stored
 * rows are row_px apart. */
size_t pb_turn_pixel(const struct pb_turn *turn, int32_t w, int32_t h, int32_t x, int32_t y,
                     size_t row_px);
/* Corners of the stored image (0 upper left, 1 lower left, 2 lower right, 3 upper right) at the
 * picture's upper left, upper right, lower right and lower left. */
void pb_turn_corners(const struct pb_turn *turn, int8_t out[4]);
/* "as stored", "rows reversed", ... Static. */
const char *pb_turn_text(const struct pb_turn *turn);
#endif
