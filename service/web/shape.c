/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two shapes share a point if two of their segments do, or if one has a point inside a polygon of
 * the other. A point is a segment of length 0. Coordinates are compared exactly. */
#include "service/web/shape.h"

#include "config/base/json_reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RING_MIN 4 /* points, the first one twice */

/* --- reading --- */

/* Makes room for one more entry of an array. Returns false without memory. */
static bool make_room(void **array, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return true;
    const size_t more = *room > 0 ? 2 * *room : 16;
    void *larger = realloc(*array, more * bytes);
    if (larger == NULL)
        return false;
    *array = larger;
    *room = more;
    return true;
}

static int add_point(struct pb_web_shape *shape, const struct pb_json_value *position)
{
    void *points = shape->point;
    if (pb_json_count(position) < 2)
        return -EINVAL;
    if (!make_room(&points, shape->n_points, &shape->points_room, sizeof shape->point[0]))
        return -ENOMEM;
    shape->point = points;
    double *at = shape->point[shape->n_points++];
    at[0] = pb_json_number_of(pb_json_at(position, 0), (double)NAN);
    at[1] = pb_json_number_of(pb_json_at(position, 1), (double)NAN);
    return isfinite(at[0]) && isfinite(at[1]) ? 0 : -EINVAL;
}

static int add_path(struct pb_web_shape *shape, size_t first, size_t polygon)
{
    void *paths = shape->path;
    const size_t n = shape->n_points - first;
    if (!make_room(&paths, shape->n_paths, &shape->paths_room, sizeof shape->path[0]))
        return -ENOMEM;
    shape->path = paths;
    shape->path[shape->n_paths++] = (struct pb_web_path){first, n, polygon};
    const double(*point)[2] = (const double(*)[2])shape->point + first;
    return polygon == 0 || (n >= RING_MIN && point[0][0] == point[n - 1][0] &&
                            point[0][1] == point[n - 1][1])
               ? 0
               : -EINVAL;
}

static int read_point(struct pb_web_shape *shape, const struct pb_json_value *position)
{
    const int rc = add_point(shape, position);
    return rc ? rc : add_path(shape, shape->n_points - 1, 0);
}

/* Reads the points of a line, or of a ring. */
static int read_line(struct pb_web_shape *shape, const struct pb_json_value *line, size_t polygon)
{
    const size_t first = shape->n_points, n = pb_json_count(line);
    int rc = n >= 2 ? 0 : -EINVAL;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_point(shape, pb_json_at(line, i));
    return rc ? rc : add_path(shape, first, polygon);
}

static int read_string(struct pb_web_shape *shape, const struct pb_json_value *line)
{
    return read_line(shape, line, 0);
}

static int read_polygon(struct pb_web_shape *shape, const struct pb_json_value *rings)
{
    const size_t polygon = ++shape->n_polygons;
    int rc = pb_json_count(rings) > 0 ? 0 : -EINVAL;
    for (size_t i = 0; i < pb_json_count(rings) && rc == 0; i++)
        rc = read_line(shape, pb_json_at(rings, i), polygon);
    return rc;
}

static int read_geometry(struct pb_web_shape *shape, const struct pb_json_value *geometry)
{
    static const struct {
        const char *one, *many;
        int (*read)(struct pb_web_shape *shape, const struct pb_json_value *coordinates);
    } types[] = {{"Point", "MultiPoint", read_point},
                 {"LineString", "MultiLineString", read_string},
                 {"Polygon", "MultiPolygon", read_polygon}};
    const char *type = pb_json_get_text(geometry, "type");
    const struct pb_json_value *of = pb_json_get(geometry, "coordinates", NULL);
    int rc = type != NULL ? 0 : -EINVAL;
    for (size_t i = 0; i < sizeof types / sizeof types[0] && rc == 0; i++) {
        if (strcmp(type, types[i].one) == 0)
            return types[i].read(shape, of);
        if (strcmp(type, types[i].many) != 0)
            continue;
        for (size_t k = 0; k < pb_json_count(of) && rc == 0; k++)
            rc = types[i].read(shape, pb_json_at(of, k));
        return rc;
    }
    if (rc != 0 || strcmp(type, "GeometryCollection") != 0)
        return -EINVAL;
    of = pb_json_get(geometry, "geometries", NULL);
    for (size_t i = 0; i < pb_json_count(of) && rc == 0; i++)
        rc = read_geometry(shape, pb_json_at(of, i)); /* the parser limits the depth */
    return rc;
}

int pb_web_shape_read(const struct pb_json_value *geometry, struct pb_web_shape *out)
{
    struct pb_web_shape shape = {0};
    int rc = read_geometry(&shape, geometry);
    rc = rc == 0 && shape.n_points == 0 ? -EINVAL : rc;
    if (rc == 0)
        *out = shape;
    else
        pb_web_shape_fini(&shape);
    return rc;
}

void pb_web_shape_fini(struct pb_web_shape *shape)
{
    free(shape->point);
    free(shape->path);
    *shape = (struct pb_web_shape){0};
}

/* --- common points --- */

/* Returns the side of the line from a to b at which p is: the sign of the number; 0 = on it. */
static double side(const double a[2], const double b[2], const double p[2])
{
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]);
}

/* Returns true if p is in the box of the segment. */
static bool is_beside(const double a[2], const double b[2], const double p[2])
{
    return fmin(a[0], b[0]) <= p[0] && p[0] <= fmax(a[0], b[0]) && fmin(a[1], b[1]) <= p[1] &&
           p[1] <= fmax(a[1], b[1]);
}

static bool do_segments_meet(const double a[2], const double b[2], const double c[2],
                             const double d[2])
{
    const double s1 = side(a, b, c), s2 = side(a, b, d), s3 = side(c, d, a), s4 = side(c, d, b);
    if (((s1 > 0 && s2 < 0) || (s1 < 0 && s2 > 0)) && ((s3 > 0 && s4 < 0) || (s3 < 0 && s4 > 0)))
        return true;
    return (s1 == 0 && is_beside(a, b, c)) || (s2 == 0 && is_beside(a, b, d)) ||
           (s3 == 0 && is_beside(c, d, a)) || (s4 == 0 && is_beside(c, d, b));
}

/* Returns segment i of a path: its first point; *out_end is its last one. */
static const double *segment(const struct pb_web_shape *shape, const struct pb_web_path *path,
                             size_t i, const double **out_end)
{
    const double *first = shape->point[path->first + i];
    *out_end = path->n > 1 ? shape->point[path->first + i + 1] : first;
    return first;
}

static size_t n_segments(const struct pb_web_path *path)
{
    return path->n > 1 ? path->n - 1 : 1;
}

static bool do_paths_meet(const struct pb_web_shape *a, const struct pb_web_path *path,
                          const struct pb_web_shape *b, const struct pb_web_path *other)
{
    for (size_t i = 0; i < n_segments(path); i++) {
        const double *end, *start = segment(a, path, i, &end);
        for (size_t k = 0; k < n_segments(other); k++) {
            const double *other_end, *other_start = segment(b, other, k, &other_end);
            if (do_segments_meet(start, end, other_start, other_end))
                return true;
        }
    }
    return false;
}

/* Returns true if a ray from p to the east crosses the ring an odd number of times. */
static bool is_odd(const struct pb_web_shape *shape, const struct pb_web_path *ring,
                   const double p[2])
{
    bool odd = false;
    for (size_t i = 0; i < n_segments(ring); i++) {
        const double *b, *a = segment(shape, ring, i, &b);
        if ((a[1] > p[1]) != (b[1] > p[1]) &&
            p[0] < a[0] + (b[0] - a[0]) * (p[1] - a[1]) / (b[1] - a[1]))
            odd = !odd;
    }
    return odd;
}

/* Returns true if the point is inside a polygon of the shape, and in none of its holes. */
static bool is_inside(const struct pb_web_shape *shape, const double p[2])
{
    bool odd = false;
    for (size_t i = 0; i < shape->n_paths; i++) {
        if (i > 0 && shape->path[i].polygon != shape->path[i - 1].polygon) {
            if (odd)
                return true;
        }
        if (shape->path[i].polygon != 0 && is_odd(shape, &shape->path[i], p))
            odd = !odd;
    }
    return odd;
}

static bool has_point_inside(const struct pb_web_shape *of, const struct pb_web_shape *shape)
{
    for (size_t i = 0; i < of->n_paths && shape->n_polygons > 0; i++)
        if (is_inside(shape, of->point[of->path[i].first]))
            return true;
    return false;
}

bool pb_web_shape_meets(const struct pb_web_shape *a, const struct pb_web_shape *b)
{
    for (size_t i = 0; i < a->n_paths; i++)
        for (size_t k = 0; k < b->n_paths; k++)
            if (do_paths_meet(a, &a->path[i], b, &b->path[k]))
                return true;
    return has_point_inside(a, b) || has_point_inside(b, a);
}

void pb_web_shape_bbox(const struct pb_web_shape *shape, double out[4])
{
    out[0] = out[1] = INFINITY;
    out[2] = out[3] = -INFINITY;
    for (size_t i = 0; i < shape->n_points; i++)
        for (int axis = 0; axis < 2; axis++) {
            out[axis] = fmin(out[axis], shape->point[i][axis]);
            out[2 + axis] = fmax(out[2 + axis], shape->point[i][axis]);
        }
}
