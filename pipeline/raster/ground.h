/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GROUND_H
#define PB_RASTER_GROUND_H
/* Transformations from a scene to other coordinate systems, and georeferencing of products in
 * those systems. Thread: the plan's. */
#include "config/base/err.h"
#include "kernels/ground.h"
#include "pipeline/raster/raster.h"

/* Sensor model of a scene, implemented by the layers above: maps between pixels of the whole
 * image and longitude, latitude (WGS 84, degrees) at a height above the ellipsoid in metres. A
 * function returns false if there is no such place or pixel. */
struct pb_ground_sensor {
    const void *of;       /* context of the functions; NULL: no model */
    const char *why_none; /* reason for users why `of` is NULL */
    const char *name;     /* name for users: "range-Doppler by the annotation" */
    int32_t width, height;
    double mean_height; /* mean height of the ground; NaN: unknown */
    bool (*pixel)(const void *of, double lon, double lat, double height, double *out_x,
                  double *out_y);
    bool (*ground)(const void *of, double x, double y, double height, double *out_lon,
                   double *out_lat);
};

/* Source of a scene's georeferencing. */
struct pb_ground_source {
    struct pb_raster *raster;
    struct pb_ground_sensor sensor;
};

/* Finder that places a scene's pixels in another system; source is borrowed while the finder is
 * used. Missing georeferencing is reported when a transformation is opened. */
struct pb_ground_finder pb_raster_ground_finder(const struct pb_ground_source *source);

/* Gets the grid of a raster; the text in *out is the caller's. Returns 0; -ENODATA: no
 * geotransform with a coordinate system; -ENOMEM. */
int pb_raster_ground(const struct pb_raster *raster, struct pb_ground *out);

/* Opens a raster without pixels that has the ground's grid, for everything that products record
 * about their place (footprint, CRS, georeferencing tags). Close it with pb_raster_close. */
int pb_raster_placed(const struct pb_ground *ground, int32_t w, int32_t h, struct pb_err *err,
                     struct pb_raster **out_raster);

/* Cuts a footprint to the hemisphere for which the raster's coordinate system is defined
 * (EASE-Grid North, for example): the corners of such grids extend past the equator, where they
 * have no meaning. */
void pb_raster_footprint_defined(struct pb_raster *raster, struct pb_footprint *footprint);

/* Transforms n points of one EPSG system to another, x east and y north; NaN where a point has
 * no image. Returns false if PROJ has no transformation or memory is exhausted. */
bool pb_raster_points(int from, int to, size_t n, double *x, double *y);
#endif
