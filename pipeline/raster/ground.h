/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GROUND_H
#define PB_RASTER_GROUND_H
/* Other coordinate systems than a scene's: the way there, and products that lie there. Thread: that
 * of the plan. */
#include "config/base/err.h"
#include "kernels/ground.h"
#include "pipeline/raster/raster.h"

/* How a scene's pixels are placed elsewhere; raster is borrowed while the finder is used. What it
 * lacks for that is told when a way is opened. */
struct pb_ground_finder pb_raster_ground_finder(struct pb_raster *raster);

/* A raster without pixels that lies on a ground, for all that products say about their place
 * (footprint, CRS, georeferencing tags). To be closed by pb_raster_close. */
int pb_raster_placed(const struct pb_ground *ground, int32_t w, int32_t h, struct pb_err *err,
                     struct pb_raster **out_raster);

/* n points of one EPSG system become those of another, x east and y north; NaN where there is none.
 * False: PROJ knows no way, or memory is out. */
bool pb_raster_points(int from, int to, size_t n, double *x, double *y);
#endif
