/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OUTLINE_H
#define PB_OUTLINE_H
/* Geometry of a footprint, without knowing how pixels become coordinates: points around the edge
 * of an image, and the closed ring in longitude/latitude made of them, across the antimeridian and
 * around a pole, too. Pure, any thread. */
#include "pipeline/raster/raster.h"

#include <stddef.h>
#include <stdint.h>

#define PB_OUTLINE_EDGE   8 /* points an edge: a corner and seven between it and the next */
#define PB_OUTLINE_POINTS (4 * PB_OUTLINE_EDGE)

/* Points along the edge of the image in pixel coordinates (0, 0 = upper left corner of the upper
 * left pixel), not closed. */
void pb_outline_pixels(int32_t width, int32_t height, double out_xy[PB_OUTLINE_POINTS][2]);

/* Makes the footprint of PB_OUTLINE_POINTS points in degrees. 0; -ENODATA when they are not on the
 * Earth or enclose nothing. */
int pb_outline_footprint(double lonlat[PB_OUTLINE_POINTS][2], struct pb_footprint *out_footprint);
#endif
