/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILES_H
#define PB_TILES_H
/* Which tiles of a grid a scene may touch, by the outline of its image: more than it does touch,
 * never fewer. No state. Thread: that of the plan. */
#include "config/base/err.h"
#include "kernels/ops/geometry/warp.h"
#include "pipeline/raster/raster.h"

/* So many are looked at; of them PB_TILES_MAX may be made. */
#define PB_TILES_LOOKED_AT_MAX 256

struct pb_tile_list {
    struct pb_ground_tile *tile; /* n; the caller's to free */
    size_t n;
};

/* The tiles that the step names, else those around the scene's footprint, from the north to the
 * south and from the west to the east in each system; none when the scene is not on the Earth.
 * pipeline.tiles: more than are looked at. */
int pb_tiles_find(const struct pb_warp_op *warp, struct pb_raster *raster, struct pb_err *err,
                  struct pb_tile_list *out);
#endif
