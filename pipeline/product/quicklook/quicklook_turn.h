/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUICKLOOK_TURN_H
#define PB_QUICKLOOK_TURN_H
/* North up: which of the eight ways of turning and mirroring a picture by whole pixels brings north
 * nearest to its top and east to its right. Pure; any thread. */
#include "pipeline/raster/raster.h"

struct pb_turn {
    bool transposed;           /* columns become rows, before the others */
    bool flip_rows, flip_cols; /* of the picture */
};

/* As stored when it is not known where north is. */
struct pb_turn pb_turn_of(const struct pb_raster_info *info);
/* The stored pixel at column x and row y of a picture of w x h (of the picture); stored rows are
 * row_px apart. */
size_t pb_turn_pixel(const struct pb_turn *turn, int32_t w, int32_t h, int32_t x, int32_t y,
                     size_t row_px);
/* "as stored", "rows reversed", ... Static. */
const char *pb_turn_text(const struct pb_turn *turn);
#endif
