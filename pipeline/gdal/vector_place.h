/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_PLACE_H
#define PB_VECTOR_PLACE_H
/* Rings in a scene's coordinate system: the transformation from the file's system to the
 * scene's, and rings of systems in which no edge crosses a seam. vector_wrap.h handles the
 * others. One thread per object. */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/vector_make.h"

#define PB_VECTOR_SAMPLES 100

/* A pixel of the scene in three systems. */
struct pb_vector_sample {
    double file[2], scene[2];
    double sphere[2]; /* longitude and latitude of the scene's datum */
};

/* Transformation from the file's system to the scene's. Longitudes and latitudes are in the
 * scene's unit. */
struct pb_vector_way {
    OGRCoordinateTransformationH to;     /* NULL: both systems are the same */
    OGRCoordinateTransformationH sphere; /* to longitude and latitude; NULL: the file has them */
    OGRCoordinateTransformationH onto;   /* and to the scene; NULL: the scene has them */
    OGRSpatialReferenceH file, scene;    /* borrowed */
    double tolerance; /* tolerance of edges, in units of the scene; 0: edges are not halved */
    double px[2];     /* width and height of a pixel, in units of the scene */
    bool geographic;  /* the scene has longitudes and latitudes */
    bool planar;      /* the file has longitudes and latitudes too, and its longitudes may continue
                         beyond 180 */
    double circle;    /* a full turn of longitude; 0: unknown */
    double ratio, offset; /* planar: longitude of the scene = file * ratio + offset, except for a
                             shift of the datum */
    double low, high;     /* geographic: the scene's longitudes */
    int has_seam;         /* -1: not searched yet */
    double seam;          /* longitude at which the scene's plane ends */
    double lat[2];        /* lowest and highest latitude of that plane */
    struct pb_vector_sample sample[PB_VECTOR_SAMPLES]; /* empty if both are planar and geographic */
    size_t n_samples;
    double scene_bounds[4]; /* west, south, east, north */
};

/* Returns true if a feature of that geometry, which may be NULL, is not a polygon: a point or
 * line. */
bool pb_vector_is_left_out(OGRGeometryH geometry);
/* Transformation from one coordinate system to another, x before y in both; NULL if not found.
 * The caller's (OCTDestroyCoordinateTransformation). srs are borrowed. */
OGRCoordinateTransformationH pb_vector_to(OGRSpatialReferenceH from, OGRSpatialReferenceH to);
/* Transforms x and y to the other system; NULL leaves them unchanged. Returns false if they have
 * no place there. */
bool pb_vector_move(OGRCoordinateTransformationH to, double xy[2]);

/* Opens the transformation from a file's system to that of a scene, `to`; either both are NULL or
 * none. file and to are borrowed until fini, and used by the thread of the object. Returns 0;
 * -ERANGE: no transformation. Needs fini in any case. */
int pb_vector_way_init(struct pb_vector_way *way, OGRSpatialReferenceH file,
                       OGRSpatialReferenceH to, const struct pb_raster_info *scene,
                       double tolerance);
void pb_vector_way_fini(struct pb_vector_way *way);

/* Counts of samples by their side of a ring: same side in the file's system and in the other
 * one, or opposite sides. */
struct pb_vector_vote {
    size_t same, other;
};
/* Returns true if the ring, with its envelope, contains the sample in the file's system. */
bool pb_vector_holds(const struct pb_vector_way *way, OGRGeometryH ring, const OGREnvelope *around,
                     const struct pb_vector_sample *sample);
/* Returns 0: inside stays inside; 1: inside becomes outside; -EXDEV: samples disagree, the ring
 * is torn. */
int pb_vector_side(const struct pb_vector_vote *vote);

/* Adds a ring of OGR's to the current polygon; a last vertex that repeats the first one is
 * dropped. If the ring's inside becomes the outside of its image, as for a polygon around the
 * place opposite the centre of an azimuthal system, the scene's rectangle is added as a ring.
 * Returns 0; -ENOMEM; -ERANGE: a place has no coordinates in that system, or a vertex is not a
 * number; -E2BIG: more than PB_VECTOR_VERTICES_MAX; -EXDEV: an edge crosses a seam of the
 * scene's system. */
int pb_vector_place_ring(struct pb_vector_make *make, OGRGeometryH ring,
                         const struct pb_vector_way *way);
#endif
