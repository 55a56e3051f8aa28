/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_MODEL_H
#define PB_RASTER_GDAL_MODEL_H
/* Georeferencing of a scene and the transformer that applies it: GDAL's by the geotransform, by
 * ground control points, or by RPCs; or a model of the sensor. Thread: the plan's. */
#include "kernels/ground.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/raster/ground.h"

/* An open transformer between the pixels of a scene and those of a new grid. */
struct pb_gdal_model {
    enum pb_ground_model model; /* never AUTO */
    void *image; /* GDAL's GenImgProj; to longitude, latitude if rpc or sensor is set */
    void *rpc;   /* transformer by RPCs, or NULL */
    const struct pb_ground_sensor
        *sensor;      /* model of the sensor, or NULL; borrowed from the source */
    double height;    /* height of places for the sensor */
    double lonlat[2]; /* with rpc or sensor: a place in the scene; longitudes are in the turn around
                         it, so that they are continuous across 180 degrees; NaN: unknown */
    double reach[2];  /* range of the RPCs: distance from the place in degrees */
    double part[2], scale[2]; /* pixels are ((x, y) - part) * scale of the scene's */
    char by[128];             /* text for `by` of struct pb_ground */
};

/* Opens the transformer to the coordinate system wkt. Returns 0; with a message in why: -EINVAL,
 * the scene lacks the requested georeferencing; -EDOM, the scene is outside that system. *out
 * needs close in any case. */
int pb_gdal_model_open(const struct pb_ground_source *source, const struct pb_ground_ask *ask,
                       const char *wkt, char *why, size_t why_bytes, struct pb_gdal_model *out);
/* Opens the same for the pixels of a made grid, which has a geotransform. */
int pb_gdal_model_made(GDALDatasetH made, const struct pb_ground_ask *ask, const char *wkt,
                       char *why, size_t why_bytes, struct pb_gdal_model *out);
/* A GDALTransformerFunc over a struct pb_gdal_model. */
int pb_gdal_model_transform(void *model, int to_source, int n, double *x, double *y, double *z,
                            int *ok);
/* Returns true if the transformation uses longitude and latitude, so that GDAL's transformer is
 * only a part of it. */
bool pb_gdal_model_by_lonlat(const struct pb_gdal_model *model);
void pb_gdal_model_close(struct pb_gdal_model *model);
#endif
