/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_SHAPE_H
#define PB_WEB_SHAPE_H
/* Geometries of GeoJSON (RFC 7946) in the plane of longitude and latitude: whether two share a
 * point. Pure functions; thread: any. */
#include <stdbool.h>
#include <stddef.h>

struct pb_json_value;

struct pb_web_shape {
    double (*point)[2]; /* n_points */
    size_t n_points, points_room;
    struct pb_web_path {
        size_t first, n; /* points: 1 = a point, more = a line or a ring */
        size_t polygon;  /* number of the ring's polygon, from 1 on; 0 = no ring */
    } * path;            /* n_paths; rings of a polygon follow each other */
    size_t n_paths, paths_room, n_polygons;
};

/* Reads a geometry of any type. Returns 0 and *out (the caller's to fini); -EINVAL: malformed,
 * empty, or a ring is not closed; -ENOMEM. */
int pb_web_shape_read(const struct pb_json_value *geometry, struct pb_web_shape *out);
void pb_web_shape_fini(struct pb_web_shape *shape); /* a zeroed one is fine */
/* Returns true if the shapes share a point; boundaries belong to them. */
bool pb_web_shape_meets(const struct pb_web_shape *a, const struct pb_web_shape *b);
/* Writes the smallest and the largest coordinates: x, y, x, y. */
void pb_web_shape_bbox(const struct pb_web_shape *shape, double out[4]);
#endif
