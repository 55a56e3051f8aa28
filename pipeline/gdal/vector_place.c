/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A straight edge is a curve in another coordinate system. It is halved, in the file's coordinates,
 * until the middle of a part is nearer than the tolerance to the line between its ends. */
#include "pipeline/gdal/vector_place.h"
#include "pipeline/gdal/vector.h"

#include <errno.h>
#include <math.h>

#define HALVINGS_MAX 16

struct place {
    double file[2], scene[2];
};

OGRCoordinateTransformationH pb_vector_to(OGRSpatialReferenceH from, OGRSpatialReferenceH to)
{
    OGRSpatialReferenceH a = OSRClone(from), b = OSRClone(to);
    OSRSetAxisMappingStrategy(a, OAMS_TRADITIONAL_GIS_ORDER);
    OSRSetAxisMappingStrategy(b, OAMS_TRADITIONAL_GIS_ORDER);
    OGRCoordinateTransformationH made = OCTNewCoordinateTransformation(a, b);
    OSRDestroySpatialReference(a);
    OSRDestroySpatialReference(b);
    return made;
}

bool pb_vector_is_left_out(OGRGeometryH geometry)
{
    return geometry != NULL && !OGR_G_IsEmpty(geometry) && OGR_G_GetDimension(geometry) < 2;
}

static int find_place(struct place *place, OGRCoordinateTransformationH to)
{
    double x = place->file[0], y = place->file[1];
    int fine = TRUE;
    if (to != NULL && (!OCTTransformEx(to, 1, &x, &y, NULL, &fine) || !fine))
        return -ERANGE;
    place->scene[0] = x;
    place->scene[1] = y;
    return isfinite(x) && isfinite(y) ? 0 : -ERANGE;
}

/* How far p is from the line a - b, squared. */
static double distance2(const double a[2], const double b[2], const double p[2])
{
    const double dx = b[0] - a[0], dy = b[1] - a[1], length2 = dx * dx + dy * dy;
    const double px = p[0] - a[0], py = p[1] - a[1];
    const double cross = px * dy - py * dx;
    return length2 > 0 ? cross * cross / length2 : px * px + py * py;
}

/* Adds the vertices of an edge but for its first. */
static int add_edge(struct pb_vector_make *make, const struct place *a, const struct place *b,
                    OGRCoordinateTransformationH to, double tolerance, int halvings)
{
    struct place middle;
    int rc = 0;
    if (make->n_vertices >= PB_VECTOR_VERTICES_MAX)
        return -E2BIG;
    if (to == NULL || tolerance <= 0 || halvings == 0)
        return pb_vector_make_vertex(make, b->scene[0], b->scene[1]);
    for (int k = 0; k < 2; k++)
        middle.file[k] = (a->file[k] + b->file[k]) / 2;
    rc = find_place(&middle, to);
    if (rc < 0)
        return rc;
    if (distance2(a->scene, b->scene, middle.scene) <= tolerance * tolerance)
        return pb_vector_make_vertex(make, b->scene[0], b->scene[1]);
    rc = add_edge(make, a, &middle, to, tolerance, halvings - 1);
    return rc < 0 ? rc : add_edge(make, &middle, b, to, tolerance, halvings - 1);
}

int pb_vector_place_ring(struct pb_vector_make *make, OGRGeometryH ring,
                         OGRCoordinateTransformationH to, double tolerance)
{
    const int n = OGR_G_GetPointCount(ring);
    struct place first = {{0, 0}, {0, 0}}, last;
    int rc = n > 0 ? pb_vector_make_ring(make) : 0;
    for (int i = 0; rc == 0 && i <= n && n > 0; i++) {
        struct place at;
        at.file[0] = OGR_G_GetX(ring, i % n);
        at.file[1] = OGR_G_GetY(ring, i % n);
        rc = isfinite(at.file[0]) && isfinite(at.file[1]) ? find_place(&at, to) : -ERANGE;
        if (rc < 0)
            break;
        if (i == 0)
            first = at;
        else if (at.file[0] != last.file[0] || at.file[1] != last.file[1])
            rc = add_edge(make, &last, &at, to, tolerance, HALVINGS_MAX);
        last = at;
    }
    /* The ring came back to its first vertex, which so is its last one alone. */
    if (rc == 0 && n > 0 && make->ring[make->n_rings - 1].n == 0)
        rc = pb_vector_make_vertex(make, first.scene[0], first.scene[1]);
    return rc;
}
