/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PIXEL_AREA_H
#define PB_PIXEL_AREA_H
/* Area of a pixel on the ground. In a projected CRS it follows from its units: the area on the
 * map. In a geographic CRS, and in Mercator's projection, whose scale grows with the latitude,
 * it is the area on the ellipsoid between the meridians and parallels that bound the pixel, and
 * depends on the row. Pure; any thread. */
#include "pipeline/raster/raster.h"

/* Returns true if the area of pixels depends on the row. */
bool pb_pixel_area_varies(const struct pb_raster_info *info);
/* Area in m2, in a grid with that transform (GDAL's order) in the CRS of the scene. NaN:
 * unknown, because there is no CRS, or the rows of a geographic grid are not parallels. */
double pb_pixel_area(const struct pb_raster_info *info, const double transform[6], int32_t row);
#endif
