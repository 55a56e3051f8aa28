/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILES_H
#define PB_TILES_H
/* Tiles of a grid that a scene may touch, from the outline of its image: possibly too many,
 * never too few. No state. Thread: that of the plan. */
#include "config/base/err.h"
#include "kernels/ops/geometry/warp.h"
#include "pipeline/raster/raster.h"

/* Limit of candidate tiles; PB_TILES_MAX of them may be made. */
#define PB_TILES_LOOKED_AT_MAX 256

struct pb_tile_list {
    struct pb_ground_tile *tile; /* n; the caller's to free */
    size_t n;
};

/* The tiles that the step names, else those around the scene's footprint, from the north to the
 * south and from the west to the east in each system; n 0 if the scene is not on the Earth.
 * pipeline.tiles: more than PB_TILES_LOOKED_AT_MAX. */
int pb_tiles_find(const struct pb_warp_op *warp, struct pb_raster *raster, struct pb_err *err,
                  struct pb_tile_list *out);
#endif
