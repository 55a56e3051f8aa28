/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_REACH_H
#define PB_VECTOR_REACH_H
/* Position of a scene in the coordinate system of a vector file, for geometries that extend
 * beyond the scene's own system. */
#include "pipeline/gdal/raster_gdal_inside.h"

#define PB_VECTOR_REACH_SIDE 21

struct pb_vector_reach {
    bool has_near; /* the rectangle around the scene in the file's system is known */
    double near[4];
    /* Pixels all over the scene, in the file's system, without those that have no place in it. */
    double seen[PB_VECTOR_REACH_SIDE * PB_VECTOR_REACH_SIDE][2];
    size_t n_seen;
};

/* srs and scene are borrowed. */
void pb_vector_reach_find(struct pb_vector_reach *reach, const struct pb_raster *scene,
                          OGRSpatialReferenceH file);
/* Returns true if the geometry is far from the scene according to their rectangles. circle: a
 * full turn of the file's longitudes, which repeat after it; 0: no longitudes. */
bool pb_vector_reach_is_far(const struct pb_vector_reach *reach, OGRGeometryH geometry,
                            double circle);
/* Cuts a polygon by the rectangle around the scene, with a margin, shifted by `aside` in
 * longitude. NULL: nothing is left, or the rectangle is unknown. The caller's. */
OGRGeometryH pb_vector_reach_cut(const struct pb_vector_reach *reach, OGRGeometryH polygon,
                                 double aside);
/* Returns true if the ring cannot affect the scene: none of its vertices has a place in the
 * scene's system, and no sampled pixel is in the rectangle around it. */
bool pb_vector_reach_is_beyond(const struct pb_vector_reach *reach, OGRGeometryH ring,
                               OGRCoordinateTransformationH to);
#endif
