/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_MAKE_H
#define PB_VECTOR_MAKE_H
/* Polygons as they are collected feature by feature, and the block that pb_polygons is then. */
#include "pipeline/raster/polygons.h"

/* Lists that grow; zeroed before the first use. A negative errno from any call leaves them to be
 * freed. */
struct pb_vector_make {
    struct pb_polygon *polygon;
    size_t n, room;
    struct pb_ring *ring;
    size_t n_rings, ring_room;
    uint32_t part; /* of the rings that follow */
    double (*xy)[2];
    size_t n_vertices, vertex_room;
    char *text; /* of values, each with its NUL; a value's place is in at */
    size_t text_bytes, text_room;
    struct pb_vector_value {
        size_t at;                     /* SIZE_MAX: null */
        struct pb_polygon_value value; /* without its text */
    } * value;
    size_t n_values, value_room;
};

/* A polygon, to which rings and values that follow belong. 0 or -ENOMEM, as of the others. */
int pb_vector_make_polygon(struct pb_vector_make *make, int64_t fid);
int pb_vector_make_ring(struct pb_vector_make *make);
int pb_vector_make_vertex(struct pb_vector_make *make, double x, double y);
int pb_vector_make_value(struct pb_vector_make *make, const struct pb_polygon_value *value);
/* The polygons; n_fields values each. NULL: no memory. */
struct pb_polygons *pb_vector_make_polygons(const struct pb_vector_make *make, size_t n_fields);
void pb_vector_make_free(struct pb_vector_make *make);
#endif
