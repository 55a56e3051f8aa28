/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_MODEL_H
#define PB_RASTER_GDAL_MODEL_H
/* What says where the pixels of a scene lie, and the transformer that computes it: GDAL's by the
 * geotransform, by ground control points, or by RPCs; or a model of the sensor. Thread: that of the
 * plan. */
#include "kernels/ground.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/raster/ground.h"

/* An open transformer between the pixels of a scene and those of a new grid. */
struct pb_gdal_model {
    enum pb_ground_model model; /* never AUTO */
    void *image; /* GDAL's GenImgProj: to pixels of the scene; with one of the next two to
                    longitude, latitude, and that from there on */
    void *rpc;   /* NULL: there are none */
    const struct pb_ground_sensor *sensor; /* NULL: there is none; borrowed of the source */
    double height;                         /* of the sensor's places */
    double lonlat[2]; /* with one of these: a place in the scene; longitudes are told in the turn
                         around it, so that those of a scene across 180 degrees go on; NaN: not
                         known */
    double reach[2];  /* where the RPCs are defined: this far around the place */
    double part[2], scale[2]; /* the pixels are ((x, y) - part) * scale of the scene's */
    char by[128];             /* as struct pb_ground has it */
};

/* The transformer to the coordinate system wkt. 0; with words in why: -EINVAL, the scene lacks what
 * the ask wants; -EDOM, what it has places it nowhere in that system. *out is to be closed then as
 * well. */
int pb_gdal_model_open(const struct pb_ground_source *source, const struct pb_ground_ask *ask,
                       const char *wkt, char *why, size_t why_bytes, struct pb_gdal_model *out);
/* The same from the pixels of a made grid, which has a geotransform. */
int pb_gdal_model_made(GDALDatasetH made, const struct pb_ground_ask *ask, const char *wkt,
                       char *why, size_t why_bytes, struct pb_gdal_model *out);
/* A GDALTransformerFunc over a struct pb_gdal_model. */
int pb_gdal_model_transform(void *model, int to_source, int n, double *x, double *y, double *z,
                            int *ok);
/* Whether it goes by way of longitude and latitude, so that GDAL's transformer is not all of it. */
bool pb_gdal_model_by_lonlat(const struct pb_gdal_model *model);
void pb_gdal_model_close(struct pb_gdal_model *model);
#endif
