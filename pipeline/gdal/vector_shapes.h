/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_SHAPES_H
#define PB_VECTOR_SHAPES_H
/* Coordinates of the polygons of a GeoJSON file, without the rest of the file. GDAL makes an
 * object of each number, twice, on one thread; here the numbers are read once, by any number of
 * threads, and GDAL reads a file in which the coordinates of each polygon are its number. */
#include "pipeline/gdal/raster_gdal_inside.h"

/* The value of `coordinates` of a Polygon or a MultiPolygon. */
struct pb_vector_shape {
    size_t at, bytes; /* in the text */
    bool is_multi;
};

struct pb_vector_shapes {
    char *text;                    /* content of the file */
    struct pb_vector_shape *shape; /* n, in the order of the file */
    size_t n, room;
};

/* Takes the coordinates out of a file in GDAL's memory, which has smaller content afterwards. If
 * the text is no FeatureCollection, or is unusual, the file keeps its content, and n is 0. *shapes
 * is zeroed before the call; pb_vector_shapes_free is needed whatever the result is. Returns 0 or
 * -ENOMEM. */
int pb_vector_shapes_take(struct pb_vector_shapes *shapes, const char *name);
/* Returns the number of the shape of a geometry that GDAL has read from such a file; -1: the
 * geometry is not a shape. */
int64_t pb_vector_shapes_number(const struct pb_vector_shapes *shapes, OGRGeometryH geometry);
void pb_vector_shapes_free(struct pb_vector_shapes *shapes);

/* Reader of shapes; zeroed before the first use. One thread per object. */
struct pb_vector_shape_reader {
    double (*xy)[2];
    size_t room;
    size_t n_polygons, n_rings, n_positions; /* counts of the current shape */
    bool has_z;                              /* one of its positions has more than two numbers */
    uint64_t wkb_bytes;                      /* size of all shapes that were read, as WKB */
};

/* Receives a polygon, which is borrowed for the call. A negative errno ends the reading. */
typedef int pb_vector_polygon(void *user, OGRGeometryH polygon);
/* Reads a shape, polygon by polygon. Returns 0, the error of the receiver, -ENOMEM, or -EBADMSG:
 * the text is not what GDAL accepts without remark. */
int pb_vector_shape_read(struct pb_vector_shape_reader *reader,
                         const struct pb_vector_shapes *shapes, size_t number,
                         pb_vector_polygon *polygon, void *user);
void pb_vector_shape_reader_free(struct pb_vector_shape_reader *reader);
#endif
