/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GROUND_H
#define PB_RASTER_GROUND_H
/* Other coordinate systems than a scene's: the way there, and products that lie there. Thread: that
 * of the plan. */
#include "config/base/err.h"
#include "kernels/ground.h"
#include "pipeline/raster/raster.h"

/* A model of a scene's sensor, which the layers above have: between pixels of the whole image and
 * longitude, latitude (WGS 84, degrees) at a height above the ellipsoid in metres. False: there is
 * no such place, or pixel. */
struct pb_ground_sensor {
    const void *of;       /* NULL: there is none */
    const char *why_none; /* for people, then */
    const char *name;     /* for people: "range-Doppler by the annotation" */
    int32_t width, height;
    double mean_height; /* of the ground; NaN: not known */
    bool (*pixel)(const void *of, double lon, double lat, double height, double *out_x,
                  double *out_y);
    bool (*ground)(const void *of, double x, double y, double height, double *out_lon,
                   double *out_lat);
};

/* What says where a scene's pixels lie. */
struct pb_ground_source {
    struct pb_raster *raster;
    struct pb_ground_sensor sensor;
};

/* How a scene's pixels are placed elsewhere; source is borrowed while the finder is used. What it
 * lacks for that is told when a way is opened. */
struct pb_ground_finder pb_raster_ground_finder(const struct pb_ground_source *source);

/* Where a raster lies; the text in *out is the caller's. 0; -ENODATA: it has no geotransform with a
 * coordinate system; -ENOMEM. */
int pb_raster_ground(const struct pb_raster *raster, struct pb_ground *out);

/* A raster without pixels that lies on a ground, for all that products say about their place
 * (footprint, CRS, georeferencing tags). To be closed by pb_raster_close. */
int pb_raster_placed(const struct pb_ground *ground, int32_t w, int32_t h, struct pb_err *err,
                     struct pb_raster **out_raster);

/* Of a footprint: leaves what lies in the hemisphere for which the raster's system is defined, as
 * EASE-Grid North: the corners of its grids reach beyond the equator, where they have no meaning.
 */
void pb_raster_footprint_defined(struct pb_raster *raster, struct pb_footprint *footprint);

/* n points of one EPSG system become those of another, x east and y north; NaN where there is none.
 * False: PROJ knows no way, or memory is out. */
bool pb_raster_points(int from, int to, size_t n, double *x, double *y);
#endif
