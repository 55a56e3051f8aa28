/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LONLAT_H
#define PB_LONLAT_H
/* Longitude and latitude of pixels, for threads that may not use a raster: a table of places over
 * the image, which is interpolated. Its error is far below a pixel for scenes of 100 km. */
#include <stdbool.h>
#include <stdint.h>

enum { PB_LONLAT_CELLS = 32, PB_LONLAT_NODES = PB_LONLAT_CELLS + 1 };

struct pb_lonlat {
    int32_t w, h;
    double lon[PB_LONLAT_NODES * PB_LONLAT_NODES], lat[PB_LONLAT_NODES * PB_LONLAT_NODES];
};

/* crs_code: "EPSG:32633"; transform: of the image, GDAL's order. Returns false if the coordinate
 * system has no such code or PROJ cannot transform it. Thread: one that may use PROJ. */
bool pb_lonlat_init(struct pb_lonlat *l, const char *crs_code, const double transform[6], int32_t w,
                    int32_t h);
/* Place of a point of the image, in pixels from its upper left corner. Returns false if it is
 * unknown. Thread: any. */
bool pb_lonlat_at(const struct pb_lonlat *l, double x, double y, double *out_lon, double *out_lat);
#endif
