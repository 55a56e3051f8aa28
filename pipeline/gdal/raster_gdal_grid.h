/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_GRID_H
#define PB_RASTER_GDAL_GRID_H
/* Grids in coordinate systems that a user names, by the rules of gdalwarp. Thread: that of the
 * plan. */
#include "kernels/ground.h"
#include "pipeline/gdal/raster_gdal_inside.h"

/* A dataset without bands that lies there; the caller's (GDALClose); NULL: it cannot be made. */
GDALDatasetH pb_gdal_grid_dataset(const struct pb_ground *ground, int32_t w, int32_t h);

/* The WKT of what a user calls a CRS; the caller's (CPLFree). NULL: it is none. */
char *pb_gdal_grid_wkt(const char *crs);

/* By how much x grows along the equator around the Earth, of a system in which it may go on there:
 * longitudes, and the cylindrical projections. 0: another system. */
double pb_gdal_grid_turn(const char *wkt);

/* Whether PROJ gives places beyond the edge of the system's map longitudes of others, instead of
 * none: as it does for pseudocylindrical and conic projections. */
bool pb_gdal_srs_is_open(OGRSpatialReferenceH srs);
bool pb_gdal_grid_is_open(const char *wkt); /* the same of WKT */

/* Sets size and place of the way's grid: the suggested ones, or what the ask wants otherwise. 0;
 * with words in why: -EINVAL, -EDOM: what places the scene gives no grid; -ENOMEM. */
int pb_gdal_grid_set(const struct pb_ground_ask *ask, const char *wkt, const double suggested[6],
                     int w, int h, char *why, size_t why_bytes, struct pb_ground_way *way);
#endif
