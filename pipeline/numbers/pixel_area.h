/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PIXEL_AREA_H
#define PB_PIXEL_AREA_H
/* How large a pixel is on the ground. Of a projected CRS it is what its units say: the area on the
 * map. Of a geographic CRS, and of Mercator's projection, whose scale grows with the latitude, it
 * is the area on the ellipsoid between the meridians and parallels that bound the pixel, and
 * depends on the row. Pure; any thread. */
#include "pipeline/raster/raster.h"

/* Whether pixels of other rows have other areas. */
bool pb_pixel_area_varies(const struct pb_raster_info *info);
/* In m2, of a grid with that transform (GDAL's order) in the CRS of the scene. NaN: it is not
 * known, because there is no CRS, or the rows of a geographic grid are not parallels. */
double pb_pixel_area(const struct pb_raster_info *info, const double transform[6], int32_t row);
#endif
