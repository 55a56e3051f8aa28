/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_MAKE_H
#define PB_VECTOR_MAKE_H
/* Builder of struct pb_polygons: collects polygons feature by feature. */
#include "pipeline/raster/polygons.h"

/* Makes room in a list, which has room for *room entries, for `more` entries after its first n.
 * Returns 0, or -ENOMEM and leaves the list as it was. */
int pb_vector_grow(void **list, size_t n, size_t more, size_t *room, size_t entry_bytes);

/* Growing lists; zeroed before the first use. After a negative errno from any call only free is
 * allowed. */
struct pb_vector_make {
    struct pb_polygon *polygon;
    size_t n, room;
    struct pb_ring *ring;
    size_t n_rings, ring_room;
    uint32_t part; /* part of the rings that follow */
    double (*xy)[2];
    size_t n_vertices, vertex_room;
    char *text; /* texts of values, each with its NUL; `at` is the offset of a value's text */
    size_t text_bytes, text_room;
    struct pb_vector_value {
        size_t at;                     /* SIZE_MAX: null */
        struct pb_polygon_value value; /* without its text */
    } * value;
    size_t n_values, value_room;
};

/* Begins a polygon, to which the following rings and values belong. Returns 0 or -ENOMEM, like
 * the others. */
int pb_vector_make_polygon(struct pb_vector_make *make, int64_t fid);
int pb_vector_make_ring(struct pb_vector_make *make);
int pb_vector_make_vertex(struct pb_vector_make *make, double x, double y);
int pb_vector_make_value(struct pb_vector_make *make, const struct pb_polygon_value *value);
/* Appends the rings and vertices of `from`, and frees them there. The fid of each of its polygons
 * is the number of the polygon of `make` that gets the rings. */
int pb_vector_make_append(struct pb_vector_make *make, struct pb_vector_make *from);
/* Returns the polygons, n_fields values each, which take the list of vertices over; the facts of
 * the reading are unset. NULL: out of memory. */
struct pb_polygons *pb_vector_make_polygons(struct pb_vector_make *make, size_t n_fields);
void pb_vector_make_free(struct pb_vector_make *make);
#endif
