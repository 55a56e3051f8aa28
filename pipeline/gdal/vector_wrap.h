/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_WRAP_H
#define PB_VECTOR_WRAP_H
/* Parts of polygons whose rings extend around the Earth, in a scene with longitudes or with a
 * seam: the meridian at which a world map ends. Rings are traced with longitudes that continue
 * beyond 180 degrees, and added once for each turn that overlaps the scene. One thread per
 * object. */
#include "pipeline/gdal/vector_place.h"

/* A ring as longitudes and latitudes: the last point is the first one, after `turns` turns. */
struct pb_vector_trace {
    size_t first, n; /* points */
    int turns;       /* 0; 1 and -1: around a pole */
    bool outside;    /* the inside of the ring is the outside of its trace */
};

/* Traces of the rings of a part; zeroed before the first use. */
struct pb_vector_wrap {
    double (*point)[2];
    size_t n_points, point_room;
    struct pb_vector_trace *trace;
    size_t n, room;
    bool split; /* a part was added on both sides of a seam */
};

/* Returns true if the scene's plane ends at a meridian; the search runs once. */
bool pb_vector_wrap_has_seam(struct pb_vector_way *way);
/* Returns true if a part in the scene's own system extends beyond the edges of its plane, as in
 * Mercator's projection across 180 degrees. */
bool pb_vector_wrap_is_beyond(struct pb_vector_way *way, OGRGeometryH part);
/* Drops traces from number n on. */
void pb_vector_wrap_reset(struct pb_vector_wrap *wrap, size_t n);
/* Traces a ring of OGR's. The scene is geographic or has a seam. Errors of pb_vector_place_ring. */
int pb_vector_wrap_ring(struct pb_vector_wrap *wrap, OGRGeometryH ring,
                        const struct pb_vector_way *way);
/* Adds the traces to the current polygon, as the current part and further ones. */
int pb_vector_wrap_add(struct pb_vector_wrap *wrap, const struct pb_vector_way *way,
                       struct pb_vector_make *make);
void pb_vector_wrap_free(struct pb_vector_wrap *wrap);
#endif
