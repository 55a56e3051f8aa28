/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_POLYGONS_H
#define PB_POLYGONS_H
/* Polygons with attributes, as pb_vector_read (pipeline/gdal/vector.h) reads them from a file. A
 * feature has any number of parts, each with any number of outer and inner rings. A point is
 * inside a part if a ray from it crosses the part's rings an odd number of times, and inside the
 * feature if it is inside one of its parts. Read-only after creation, so any thread may read it. */
#include "kernels/geometry.h"

#include <stddef.h>
#include <stdint.h>

/* An attribute of a feature. */
struct pb_polygon_value {
    const char *text; /* valid UTF-8; NULL = null, or not set */
    double num;       /* NaN: the field holds no number */
    bool is_whole;    /* `whole` is the exact value */
    int64_t whole;
};

struct pb_polygon {
    int64_t fid;                /* id of the feature in the file */
    size_t first_ring, n_rings; /* 0 rings: no geometry, or none near the scene */
    bool is_beyond; /* a ring was omitted because the scene's system is undefined there */
    const struct pb_polygon_value *values; /* one for each requested field, in that order */
};

/* The last vertex of a ring does not repeat the first one, unless the ring is open: it then has
 * no edge from the last vertex to the first, and is closed by other rings of its part. */
struct pb_ring {
    size_t first, n; /* vertices */
    uint32_t part;   /* consecutive rings of a polygon with the same number are a part */
    bool is_open;
};

struct pb_polygons {
    struct pb_polygon *polygon;
    size_t n;
    struct pb_ring *ring;
    size_t n_rings;
    /* malloc'd; coordinates of the scene's CRS, or pixels after pb_polygons_to_pixels; NULL after
     * pb_polygons_drop_vertices */
    double (*xy)[2];
    size_t n_vertices;
    uint64_t stamp; /* state of the file that they were read from (struct pb_vector_request) */
    bool moved;     /* transformed from another system: coordinates have rounding errors */
    bool is_split;  /* a polygon is on both sides of the meridian at which the scene's map ends */
    bool is_round;  /* columns of the scene extend around the Earth */
    size_t n_left_out;      /* features of the file that are not polygons */
    int64_t first_left_out; /* id of the first of them */
    void *memory;           /* allocation of all of the above but xy */
    size_t memory_bytes;
    /* Facts of the reading: bytes of the files, bytes of their shapes as WKB, and most bytes that
     * reading held in memory. */
    uint64_t file_bytes, wkb_bytes, read_bytes;
};

/* Bytes of the polygons in memory. */
uint64_t pb_polygons_bytes(const struct pb_polygons *polygons);

/* Writes a message that features of the file were omitted; "" if all were read. */
void pb_polygons_left_out(const struct pb_polygons *polygons, const char *path, char *text,
                          size_t bytes);
/* NULL is allowed. */
void pb_polygons_free(struct pb_polygons *polygons);
/* Frees the vertices: attributes and counts remain. By the owner. */
void pb_polygons_drop_vertices(struct pb_polygons *polygons);

/* Converts coordinates to pixels of the grid with that transform (GDAL's order): 0, 0 is the
 * upper left corner of the upper left pixel. Transformed coordinates are shifted by less than a
 * millionth of a pixel, so that rounding does not decide about a pixel whose centre is on an
 * edge. Returns 0; -EINVAL: the transform cannot be inverted. Call once, by the owner. */
int pb_polygons_to_pixels(struct pb_polygons *polygons, const double transform[6]);

/* Returns 1 if rings in pixels overlap the first and the last of `columns` columns, but no ring
 * overlaps some column between them; else 0; -ENOMEM. */
int pb_polygons_gap(const struct pb_polygons *polygons, int32_t columns);

/* Bounds of all vertices: west, south, east, north (or left, top, right, bottom); returns false
 * without vertices. */
bool pb_polygons_bounds(const struct pb_polygons *polygons, double out[4]);
#endif
