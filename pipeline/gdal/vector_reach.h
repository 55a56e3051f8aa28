/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_REACH_H
#define PB_VECTOR_REACH_H
/* Where a scene lies in the coordinate system of a vector file, for geometries that the scene's own
 * system does not reach. */
#include "pipeline/gdal/raster_gdal_inside.h"

#define PB_VECTOR_REACH_SIDE 21

struct pb_vector_reach {
    bool has_near; /* the rectangle around the scene in the file's system is known */
    double near[4];
    /* Pixels all over the scene, in the file's system, without those that are nowhere in it. */
    double seen[PB_VECTOR_REACH_SIDE * PB_VECTOR_REACH_SIDE][2];
    size_t n_seen;
};

/* srs and scene are borrowed. */
void pb_vector_reach_find(struct pb_vector_reach *reach, const struct pb_raster *scene,
                          OGRSpatialReferenceH file);
/* Whether the geometry has nothing to do with the scene, as their rectangles show. circle: of the
 * file's longitudes, which are the same a turn apart; 0: it has none. */
bool pb_vector_reach_is_far(const struct pb_vector_reach *reach, OGRGeometryH geometry,
                            double circle);
/* The part of a polygon around the scene: cut by the rectangle around the scene, with a margin, in
 * longitudes so many turns on. NULL: there is none, or the rectangle is not known. The caller's. */
OGRGeometryH pb_vector_reach_cut(const struct pb_vector_reach *reach, OGRGeometryH polygon,
                                 double aside);
/* Whether the ring has nothing to do with the scene because none of its vertices has a place in the
 * scene's system, and no pixel looked at lies in the rectangle around it. */
bool pb_vector_reach_is_beyond(const struct pb_vector_reach *reach, OGRGeometryH ring,
                               OGRCoordinateTransformationH to);
#endif
