/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_PLACE_H
#define PB_VECTOR_PLACE_H
/* Rings in a scene's coordinate system: the transformation from the file's system to the scene's,
 * and rings of systems in which no edge meets a seam. vector_wrap.h has the others. One thread an
 * object. */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/vector_make.h"

#define PB_VECTOR_SAMPLES 100

/* A pixel of the scene in three systems. */
struct pb_vector_sample {
    double file[2], scene[2];
    double sphere[2]; /* longitude and latitude of the scene's datum */
};

/* From the file's system to the scene's. Longitudes and latitudes are in the scene's unit. */
struct pb_vector_way {
    OGRCoordinateTransformationH to;     /* NULL: both systems are the same */
    OGRCoordinateTransformationH sphere; /* from the file to longitude and latitude; NULL: the
                                            file has them */
    OGRCoordinateTransformationH onto;   /* from these to the scene; NULL: the scene has them */
    OGRSpatialReferenceH file, scene;    /* borrowed */
    double tolerance;                    /* of edges, in units of the scene; 0: none are halved */
    double px[2];                        /* width and height of a pixel, in units of the scene */
    bool geographic;                     /* the scene has longitudes and latitudes */
    bool planar;                         /* so has the file, whose longitudes go on beyond 180 */
    double circle;                       /* of longitude; 0: not known */
    double ratio, offset;                /* planar: longitude of the scene = file * ratio + offset,
                                            but for a shift of the datum */
    double low, high;                    /* geographic: the scene's longitudes */
    int has_seam;                        /* -1: not looked for yet */
    double seam;                         /* the longitude at which the scene's plane ends */
    double lat[2];                       /* the lowest and highest latitude of that plane */
    struct pb_vector_sample sample[PB_VECTOR_SAMPLES]; /* not of planar on geographic */
    size_t n_samples;
    double scene_bounds[4]; /* west, south, east, north */
};

/* Whether a feature of that geometry, which may be NULL, is none of the polygons: a point or line.
 */
bool pb_vector_is_left_out(OGRGeometryH geometry);
/* From one coordinate system to another, x before y in both; NULL: none is known. The caller's
 * (OCTDestroyCoordinateTransformation). srs are borrowed. */
OGRCoordinateTransformationH pb_vector_to(OGRSpatialReferenceH from, OGRSpatialReferenceH to);
/* x and y become those of the other system; NULL: they stay. False: they have no place there. */
bool pb_vector_move(OGRCoordinateTransformationH to, double xy[2]);

/* The way from a file to a scene; either system may be NULL if both are. srs and scene are borrowed
 * until fini. 0; -ERANGE: there is no way. Needs fini in any case. */
int pb_vector_way_init(struct pb_vector_way *way, OGRSpatialReferenceH file,
                       const struct pb_raster *scene, double tolerance);
void pb_vector_way_fini(struct pb_vector_way *way);

/* Votes of samples on a ring: whether they are inside of it in the file's system, and in another
 * one. */
struct pb_vector_vote {
    size_t same, other;
};
/* Whether the ring, with its envelope, holds the sample in the file's system. */
bool pb_vector_holds(const struct pb_vector_way *way, OGRGeometryH ring, const OGREnvelope *around,
                     const struct pb_vector_sample *sample);
/* 0: inside is inside; 1: inside is outside; -EXDEV: samples differ, so the ring is torn. */
int pb_vector_side(const struct pb_vector_vote *vote);

/* Adds a ring of OGR's to the polygon under way; its last vertex is left out where it is the first
 * again. Where the ring's inside is the outside of its image, as of a polygon around the place
 * opposite the centre of an azimuthal system, the scene's rectangle is added as a ring. 0; -ENOMEM;
 * -ERANGE: a place has no coordinates in that system, or a vertex is no number; -E2BIG: more than
 * PB_VECTOR_VERTICES_MAX; -EXDEV: an edge meets a seam of the scene's system. */
int pb_vector_place_ring(struct pb_vector_make *make, OGRGeometryH ring,
                         const struct pb_vector_way *way);
#endif
