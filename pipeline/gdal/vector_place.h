/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_PLACE_H
#define PB_VECTOR_PLACE_H
/* Rings in a scene's coordinate system. */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/vector_make.h"

/* Whether a feature of that geometry, which may be NULL, is none of the polygons: a point or line.
 */
bool pb_vector_is_left_out(OGRGeometryH geometry);
/* From one coordinate system to another, x before y in both; NULL: none is known. The caller's
 * (OCTDestroyCoordinateTransformation). srs are borrowed. */
OGRCoordinateTransformationH pb_vector_to(OGRSpatialReferenceH from, OGRSpatialReferenceH to);

/* Adds a ring of OGR's to the polygon under way; its last vertex is left out where it is the first
 * again. `to` NULL: coordinates stay. 0; -ENOMEM; -ERANGE: a place has no coordinates in that
 * system, or a vertex is no number; -E2BIG: more than PB_VECTOR_VERTICES_MAX. */
int pb_vector_place_ring(struct pb_vector_make *make, OGRGeometryH ring,
                         OGRCoordinateTransformationH to, double tolerance);
#endif
