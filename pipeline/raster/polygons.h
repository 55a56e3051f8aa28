/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_POLYGONS_H
#define PB_POLYGONS_H
/* Polygons with attributes, as pb_vector_read (pipeline/gdal/vector.h) makes them of a file. A
 * feature has any number of parts, each with any number of rings, outer and inner ones alike. A
 * point is inside a part where a ray from it meets the part's rings an odd number of times, and
 * inside the feature where it is inside one of its parts. One allocation owns all of it; read-only
 * once made, so any thread may read it. */
#include "kernels/geometry.h"

#include <stddef.h>
#include <stdint.h>

/* An attribute of a feature. */
struct pb_polygon_value {
    const char *text; /* valid UTF-8; NULL = null, or not set */
    double num;       /* NaN: the field holds no number */
    bool is_whole;    /* `whole` is exactly it */
    int64_t whole;
};

struct pb_polygon {
    int64_t fid;                /* the file's number of the feature */
    size_t first_ring, n_rings; /* 0 rings: it has no geometry, or none near the scene */
    bool is_beyond; /* a ring was left out, as it is where the scene's system has no place */
    const struct pb_polygon_value *values; /* one for each field asked for, in that order */
};

/* The last vertex of a ring is not its first one again, unless the ring is open: it then has no
 * edge from the last vertex to the first, and is closed by other rings of its part. */
struct pb_ring {
    size_t first, n; /* vertices */
    uint32_t part;   /* rings of a polygon that follow each other with the same number are a part */
    bool is_open;
};

struct pb_polygons {
    struct pb_polygon *polygon;
    size_t n;
    struct pb_ring *ring;
    size_t n_rings;
    double (*xy)[2]; /* coordinates of the scene's CRS, or pixels after pb_polygons_to_pixels */
    size_t n_vertices;
    uint64_t stamp;    /* of the state of the file that they are from (struct pb_vector_request) */
    bool moved;        /* from another system, so coordinates have the rounding of that */
    bool is_split;     /* one is on both sides of the meridian at which the scene's map ends */
    bool is_round;     /* columns of the scene go around the Earth */
    size_t n_left_out; /* features of the file that are no polygons */
    int64_t first_left_out; /* the number of the first of them */
    void *memory;           /* holds all of the above */
};

/* Says in words that features of the file were left out; "" when none was. */
void pb_polygons_left_out(const struct pb_polygons *polygons, const char *path, char *text,
                          size_t bytes);
/* Frees it; NULL is fine. */
void pb_polygons_free(struct pb_polygons *polygons);

/* Coordinates become pixels of the grid with that transform (GDAL's order): 0, 0 is the upper left
 * corner of the upper left pixel. What was moved is put less than a millionth of a pixel aside, so
 * that not its rounding decides about a pixel whose centre is on an edge. 0; -EINVAL:
 * the transform cannot be inverted. Once only, by the owner. */
int pb_polygons_to_pixels(struct pb_polygons *polygons, const double transform[6]);

/* Whether rings in pixels reach the first and the last of so many columns, but a column between
 * them is in none. 1, 0; -ENOMEM. */
int pb_polygons_gap(const struct pb_polygons *polygons, int32_t columns);

/* West, south, east, north (or left, top, right, bottom) of all vertices; false: there are none. */
bool pb_polygons_bounds(const struct pb_polygons *polygons, double out[4]);
#endif
