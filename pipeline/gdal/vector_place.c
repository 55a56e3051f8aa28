/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A straight edge is a curve in another coordinate system. It is halved, in the file's
 * coordinates, until the middle of a part is nearer than the tolerance to the line between its
 * ends, and between them. An edge whose halves never converge crosses a seam. */
#include "pipeline/gdal/vector_place.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/vector.h"

#include <errno.h>
#include <math.h>

#define HALVINGS_MAX 16
/* Least distance of a middle from both ends, as a part of the edge's length, to count as between
 * them. */
#define MIDDLE_MIN 0.1
/* Distance, in tolerances, at which the ends of an edge count as apart after HALVINGS_MAX
 * halvings. */
#define APART 10
/* Length, in tolerances, beyond which an edge is long. */
#define LONG 4000
#define SIDE 10 /* samples in a row */

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

bool pb_vector_move(OGRCoordinateTransformationH to, double xy[2])
{
    int fine = TRUE;
    if (to != NULL && (!OCTTransformEx(to, 1, &xy[0], &xy[1], NULL, &fine) || !fine))
        return false;
    return isfinite(xy[0]) && isfinite(xy[1]);
}

/* Returns true if transforming the sample's place in the file's system again gives its place in
 * the scene: beyond the edge of a world map it differs. */
static bool comes_back(const struct pb_vector_way *way, const struct pb_vector_sample *sample)
{
    double at[2] = {sample->file[0], sample->file[1]};
    if (!pb_vector_move(way->to, at))
        return false;
    const double dx = at[0] - sample->scene[0], dy = at[1] - sample->scene[1];
    const double turn = way->geographic ? way->circle * rint(dx / way->circle) : 0;
    return fabs(dx - turn) <= way->px[0] && fabs(dy) <= way->px[1];
}

/* Samples pixels all over the scene, none on a line of symmetry or on an edge. */
static void find_samples(struct pb_vector_way *way, const struct pb_raster_info *info)
{
    OGRCoordinateTransformationH back = pb_vector_to(way->scene, way->file);
    for (int i = 0; back != NULL && i < PB_VECTOR_SAMPLES; i++) {
        struct pb_vector_sample *s = &way->sample[way->n_samples];
        const int x = i % SIDE, y = i / SIDE;
        const double across = (x + 0.371 + 0.0213 * y) / SIDE,
                     down = (y + 0.417 + 0.0197 * x) / SIDE;
        GDALApplyGeoTransform((double *)(uintptr_t)info->transform, across * info->width,
                              down * info->height, &s->scene[0], &s->scene[1]);
        for (int k = 0; k < 2; k++)
            s->file[k] = s->sphere[k] = s->scene[k];
        way->n_samples += pb_vector_move(back, s->file) && comes_back(way, s);
    }
    if (back != NULL)
        OCTDestroyCoordinateTransformation(back);
}

static void find_bounds(struct pb_vector_way *way, const struct pb_raster_info *info)
{
    double *b = way->scene_bounds;
    b[0] = b[1] = INFINITY;
    b[2] = b[3] = -INFINITY;
    for (int i = 0; i < 4; i++) {
        double at[2];
        GDALApplyGeoTransform((double *)(uintptr_t)info->transform, i & 1 ? info->width : 0,
                              i & 2 ? info->height : 0, &at[0], &at[1]);
        for (int k = 0; k < 2; k++) {
            b[k] = fmin(b[k], at[k]);
            b[2 + k] = fmax(b[2 + k], at[k]);
        }
    }
    way->low = b[0];
    way->high = b[2];
    way->px[0] = hypot(info->transform[1], info->transform[2]);
    way->px[1] = hypot(info->transform[4], info->transform[5]);
}

static bool has_longitudes(OGRSpatialReferenceH srs)
{
    return OSRIsGeographic(srs) && !OSRIsDerivedGeographic(srs);
}

/* Finds the linear map from longitudes of the file to those of the scene. */
static void find_longitudes(struct pb_vector_way *way)
{
    double origin[2] = {0, 0};
    const double half = way->circle / 2;
    way->ratio = OSRGetAngularUnits(way->file, NULL) / OSRGetAngularUnits(way->scene, NULL);
    if (way->to != NULL && pb_vector_move(way->to, origin) && fabs(origin[0]) <= half)
        way->offset = origin[0];
}

int pb_vector_way_init(struct pb_vector_way *way, OGRSpatialReferenceH file,
                       OGRSpatialReferenceH to, const struct pb_raster_info *scene,
                       double tolerance)
{
    *way =
        (struct pb_vector_way){.file = file, .scene = to, .tolerance = tolerance, .has_seam = -1};
    if (file == NULL || to == NULL)
        return 0;
    if (!OSRIsSame(file, to)) {
        way->to = pb_vector_to(file, to);
        if (way->to == NULL)
            return -ERANGE;
    }
    if (!scene->has_transform)
        return 0;
    find_bounds(way, scene);
    way->circle = 2 * acos(-1.0) / OSRGetAngularUnits(to, NULL);
    way->geographic = OSRIsGeographic(to);
    way->planar = has_longitudes(file) && (way->to == NULL || has_longitudes(to) ||
                                           (!way->geographic && OSRIsProjected(to)));
    way->sphere = way->geographic ? way->to : NULL;
    if (way->planar)
        find_longitudes(way);
    if (way->to != NULL && tolerance > 0 && !(way->planar && way->geographic))
        find_samples(way, scene);
    return 0;
}

void pb_vector_way_fini(struct pb_vector_way *way)
{
    if (way->sphere != NULL && way->sphere != way->to)
        OCTDestroyCoordinateTransformation(way->sphere);
    if (way->to != NULL)
        OCTDestroyCoordinateTransformation(way->to);
    if (way->onto != NULL)
        OCTDestroyCoordinateTransformation(way->onto);
    way->to = way->sphere = way->onto = NULL;
}

/* Returns true if a ray from the point to the right crosses the edge. */
static bool meets(const double a[2], const double b[2], const double p[2])
{
    return (a[1] > p[1]) != (b[1] > p[1]) &&
           p[0] < a[0] + (p[1] - a[1]) * (b[0] - a[0]) / (b[1] - a[1]);
}

static bool holds_point(OGRGeometryH ring, const double p[2])
{
    const int n = OGR_G_GetPointCount(ring);
    bool odd = false;
    for (int i = 0; i < n; i++) {
        const int before = i > 0 ? i - 1 : n - 1;
        const double a[2] = {OGR_G_GetX(ring, before), OGR_G_GetY(ring, before)};
        const double b[2] = {OGR_G_GetX(ring, i), OGR_G_GetY(ring, i)};
        odd ^= meets(a, b, p);
    }
    return odd;
}

bool pb_vector_holds(const struct pb_vector_way *way, OGRGeometryH ring, const OGREnvelope *around,
                     const struct pb_vector_sample *sample)
{
    const double circle = way->planar ? way->circle / way->ratio : 0;
    if (sample->file[1] < around->MinY || sample->file[1] > around->MaxY)
        return false;
    for (int turn = way->planar ? -1 : 0; turn <= way->planar; turn++) {
        const double p[2] = {sample->file[0] + turn * circle, sample->file[1]};
        if (p[0] >= around->MinX && p[0] <= around->MaxX && holds_point(ring, p))
            return true;
    }
    return false;
}

int pb_vector_side(const struct pb_vector_vote *vote)
{
    const size_t n = vote->same + vote->other;
    const size_t fewer = vote->same < vote->other ? vote->same : vote->other;
    if (fewer > 2 && fewer * 10 > n)
        return -EXDEV;
    return vote->other > vote->same;
}

static int find_place(struct place *place, OGRCoordinateTransformationH to)
{
    for (int k = 0; k < 2; k++)
        place->scene[k] = place->file[k];
    return pb_vector_move(to, place->scene) ? 0 : -ERANGE;
}

/* Returns true if p is near the line a - b, and in the middle of it. */
static bool is_straight(const double a[2], const double b[2], const double p[2], double tolerance)
{
    const double dx = b[0] - a[0], dy = b[1] - a[1], length2 = dx * dx + dy * dy;
    const double px = p[0] - a[0], py = p[1] - a[1], cross = px * dy - py * dx;
    if (px * px + py * py <= tolerance * tolerance)
        return length2 <= 4 * tolerance * tolerance;
    const double along = (px * dx + py * dy) / length2;
    return cross * cross <= tolerance * tolerance * length2 && along >= MIDDLE_MIN &&
           along <= 1 - MIDDLE_MIN;
}

/* Returns 1 if the edge needs no vertex in its middle, else 0, or -ERANGE. A long edge whose
 * ends and middle are on a line may still extend around the Earth: its quarters are checked too. */
static int is_near(const struct pb_vector_way *way, const struct place *a,
                   const struct place *middle, const struct place *b, bool whole)
{
    const double apart = hypot(b->scene[0] - a->scene[0], b->scene[1] - a->scene[1]);
    if (!is_straight(a->scene, b->scene, middle->scene, way->tolerance))
        return 0;
    for (int i = 0; whole && apart > LONG * way->tolerance && i < 2; i++) {
        const struct place *from = i == 0 ? a : middle, *to = i == 0 ? middle : b;
        struct place quarter;
        for (int k = 0; k < 2; k++)
            quarter.file[k] = (from->file[k] + to->file[k]) / 2;
        if (find_place(&quarter, way->to) < 0)
            return -ERANGE;
        if (!is_straight(from->scene, to->scene, quarter.scene, way->tolerance))
            return 0;
    }
    return 1;
}

/* Returns true if the ends of an edge are apart after all halvings, and its middle is not
 * between them. */
static bool is_torn(const struct pb_vector_way *way, const struct place *a,
                    const struct place *middle, const struct place *b)
{
    const double apart = hypot(b->scene[0] - a->scene[0], b->scene[1] - a->scene[1]);
    return apart > APART * way->tolerance &&
           !is_straight(a->scene, b->scene, middle->scene, apart / 4);
}

/* Adds the vertices of an edge except its first one. */
static int add_edge(struct pb_vector_make *make, const struct place *a, const struct place *b,
                    const struct pb_vector_way *way, int halvings)
{
    struct place middle;
    if (make->n_vertices >= PB_VECTOR_VERTICES_MAX)
        return -E2BIG;
    if (way->to == NULL || way->tolerance <= 0)
        return pb_vector_make_vertex(make, b->scene[0], b->scene[1]);
    for (int k = 0; k < 2; k++)
        middle.file[k] = (a->file[k] + b->file[k]) / 2;
    int rc = find_place(&middle, way->to);
    if (rc == 0)
        rc = is_near(way, a, &middle, b, halvings == HALVINGS_MAX);
    if (rc == 0 && halvings == 0)
        rc = is_torn(way, a, &middle, b) ? -EXDEV : 1;
    if (rc != 0)
        return rc < 0 ? rc : pb_vector_make_vertex(make, b->scene[0], b->scene[1]);
    rc = add_edge(make, a, &middle, way, halvings - 1);
    return rc < 0 ? rc : add_edge(make, &middle, b, way, halvings - 1);
}

static int add_ring(struct pb_vector_make *make, OGRGeometryH ring, const struct pb_vector_way *way)
{
    const int n = OGR_G_GetPointCount(ring);
    struct place first = {{0, 0}, {0, 0}}, last;
    int rc = n > 0 ? pb_vector_make_ring(make) : 0;
    for (int i = 0; rc == 0 && i <= n && n > 0; i++) {
        struct place at;
        at.file[0] = OGR_G_GetX(ring, i % n);
        at.file[1] = OGR_G_GetY(ring, i % n);
        rc = isfinite(at.file[0]) && isfinite(at.file[1]) ? find_place(&at, way->to) : -ERANGE;
        if (rc < 0)
            break;
        if (i == 0)
            first = at;
        else if (at.file[0] != last.file[0] || at.file[1] != last.file[1])
            rc = add_edge(make, &last, &at, way, HALVINGS_MAX);
        last = at;
    }
    /* The ring returned to its first vertex: it has only this vertex. */
    if (rc == 0 && n > 0 && make->ring[make->n_rings - 1].n == 0)
        rc = pb_vector_make_vertex(make, first.scene[0], first.scene[1]);
    return rc;
}

/* West, south, east, north of a ring. */
static void bounds_of(const double (*xy)[2], size_t n, double out[4])
{
    out[0] = out[1] = INFINITY;
    out[2] = out[3] = -INFINITY;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            out[k] = fmin(out[k], xy[i][k]);
            out[2 + k] = fmax(out[2 + k], xy[i][k]);
        }
}

static bool holds_scene(const double (*xy)[2], size_t n, const double bounds[4], const double p[2])
{
    bool odd = false;
    if (p[0] < bounds[0] || p[0] > bounds[2] || p[1] < bounds[1] || p[1] > bounds[3])
        return false;
    for (size_t i = 0; i < n; i++)
        odd ^= meets(xy[i > 0 ? i - 1 : n - 1], xy[i], p);
    return odd;
}

/* Adds the rectangle around the scene, with a margin, as a ring. */
static int add_scene(struct pb_vector_make *make, const struct pb_vector_way *way)
{
    const double *b = way->scene_bounds;
    const double margin[2] = {b[2] - b[0], b[3] - b[1]};
    int rc = pb_vector_make_ring(make);
    for (int i = 0; rc == 0 && i < 4; i++) {
        const bool right = i == 1 || i == 2, top = i >= 2;
        rc = pb_vector_make_vertex(make, right ? b[2] + margin[0] : b[0] - margin[0],
                                   top ? b[3] + margin[1] : b[1] - margin[1]);
    }
    return rc;
}

int pb_vector_place_ring(struct pb_vector_make *make, OGRGeometryH ring,
                         const struct pb_vector_way *way)
{
    struct pb_vector_vote vote = {0, 0};
    OGREnvelope around;
    double bounds[4];
    int rc = add_ring(make, ring, way);
    if (rc < 0 || way->n_samples == 0 || OGR_G_GetPointCount(ring) == 0)
        return rc;
    const struct pb_ring *made = &make->ring[make->n_rings - 1];
    const double(*xy)[2] = (const double(*)[2])(make->xy + made->first);
    OGR_G_GetEnvelope(ring, &around);
    bounds_of(xy, made->n, bounds);
    for (size_t i = 0; i < way->n_samples; i++) {
        const struct pb_vector_sample *s = &way->sample[i];
        const bool same =
            holds_scene(xy, made->n, bounds, s->scene) == pb_vector_holds(way, ring, &around, s);
        vote.same += same;
        vote.other += !same;
    }
    rc = pb_vector_side(&vote);
    return rc > 0 ? add_scene(make, way) : rc;
}
