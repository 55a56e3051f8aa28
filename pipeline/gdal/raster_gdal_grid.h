/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_GRID_H
#define PB_RASTER_GDAL_GRID_H
/* Grids in coordinate systems that a user names, by the rules of gdalwarp. Thread: the plan's. */
#include "kernels/ground.h"
#include "pipeline/gdal/raster_gdal_inside.h"

/* Returns a dataset without bands on that grid; the caller's (GDALClose); NULL: it cannot be
 * made. */
GDALDatasetH pb_gdal_grid_dataset(const struct pb_ground *ground, int32_t w, int32_t h);

/* Returns the WKT of a user's CRS text; the caller's (CPLFree). NULL: not a CRS. */
char *pb_gdal_grid_wkt(const char *crs);

/* Returns the growth of x along the equator around the Earth, for a system in which x may
 * continue past the seam: longitudes, and the cylindrical projections. 0: another system. */
double pb_gdal_grid_turn(const char *wkt);

/* Returns true if PROJ maps places beyond the edge of the system's map to longitudes of other
 * places instead of failing, as for pseudocylindrical and conic projections. */
bool pb_gdal_srs_is_open(OGRSpatialReferenceH srs);
bool pb_gdal_grid_is_open(const char *wkt); /* the same for WKT */

/* Sets size and place of the way's grid: the suggested ones, or those requested. Returns 0; with
 * a message in why: -EINVAL, -EDOM: the scene's georeferencing gives no grid; -ENOMEM. */
int pb_gdal_grid_set(const struct pb_ground_ask *ask, const char *wkt, const double suggested[6],
                     int w, int h, char *why, size_t why_bytes, struct pb_ground_way *way);
#endif
