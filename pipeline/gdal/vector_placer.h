/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_PLACER_H
#define PB_VECTOR_PLACER_H
/* Geometries of a file as polygons in a scene's system: chooses between rings that are placed as
 * they are, traces of rings that cross a seam, and parts that are cut around the scene. One thread
 * per object. */
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/gdal/vector_make.h"
#include "pipeline/gdal/vector_place.h"
#include "pipeline/gdal/vector_reach.h"
#include "pipeline/gdal/vector_wrap.h"

/* Zeroed before the first use. The thread listens to GDAL with `words`. */
struct pb_vector_placer {
    struct pb_gdal_words words;
    struct pb_vector_way way;
    struct pb_vector_reach reach; /* used if the systems differ; the caller finds it */
    struct pb_vector_wrap wrap;
    struct pb_vector_make make;
};

/* Opens the way to the scene: pb_vector_way_init. Needs fini in any case. */
int pb_vector_placer_init(struct pb_vector_placer *p, OGRSpatialReferenceH file,
                          OGRSpatialReferenceH to, const struct pb_raster_info *scene,
                          double tolerance);
void pb_vector_placer_fini(struct pb_vector_placer *p);
/* Adds a polygon, or the polygons of a Polygon or MultiPolygon, to the current polygon of `make`.
 * Returns 0; -EINVAL: it is neither; -EDOM: a polygon is wider than 360 degrees; the errors of
 * pb_vector_place_ring. */
int pb_vector_placer_polygon(struct pb_vector_placer *p, OGRGeometryH polygon);
int pb_vector_placer_add(struct pb_vector_placer *p, OGRGeometryH geometry);
#endif
