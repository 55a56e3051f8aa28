/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tracing: an edge is halved in the file's coordinates until the longitudes of its ends and its
 * middle are near to each other; therefore the turn of a longitude is the one nearest to the
 * previous longitude. An edge through a pole is halved down to the pole, where any turn is
 * valid. Longitudes of a geographic file, and the lengths of its edges, are used literally.
 *
 * A ring around a pole ends one turn beyond its beginning. Its inside is the part of the map
 * north of its trace, or south of it: samples of the scene, whose side in the file's system is
 * known, vote.
 *
 * A geographic scene gets copies of the rings, one turn apart. A scene with a seam gets a strip
 * of one turn: edges are cut where they cross the seam, and of the crossings, sorted by
 * latitude, every two are the ends of a piece of the seam that is inside.
 *
 * Turns of a geographic file's part are separate parts, because it may be wider than a turn.
 * Turns of other files' parts are one part, even-odd: no place is in it twice. */
#include "pipeline/gdal/vector_wrap.h"
#include "pipeline/gdal/vector.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HALVINGS_MAX 16 /* halvings of a curved edge */
#define SEARCHES_MAX 48 /* bisections for the turn of an edge and for places at a seam */
/* Search for a seam: number of steps around the Earth, and the first one, which is not on a
 * round meridian. */
#define STEPS 180
#define START (0.37 - 90)
/* Fraction of a turn: longitudes nearer to each other are in one turn. */
#define NEAR (1.0 / 8)
/* Fraction of a turn: distance from the seam at which a place has the coordinates of one side. */
#define BESIDE (1e-9 / 360)
/* Fraction of a pixel: distance by which the map extends past the poles, so that their pixels
 * are not on its edge. */
#define BEHIND_PX 3e-7
/* Fraction of a pixel: a narrower overlap is rounding. */
#define OVERLAP_PX 1e-6

struct spot {
    double file[2];
    double at[2]; /* longitude and latitude */
    bool fixed;   /* the turn of the longitude is known */
};

struct tracing {
    struct pb_vector_wrap *wrap;
    const struct pb_vector_way *way;
};

static int grow(void **list, size_t n, size_t *room, size_t bytes)
{
    const size_t more = *room > 0 ? 2 * *room : 256;
    if (n < *room)
        return 0;
    void *larger = realloc(*list, more * bytes);
    if (larger == NULL)
        return -ENOMEM;
    *list = larger;
    *room = more;
    return 0;
}

static int add_point(struct pb_vector_wrap *wrap, const double at[2])
{
    void *list = wrap->point;
    const int rc = grow(&list, wrap->n_points, &wrap->point_room, sizeof *wrap->point);
    wrap->point = list;
    if (rc < 0)
        return rc;
    memcpy(wrap->point[wrap->n_points++], at, sizeof *wrap->point);
    wrap->trace[wrap->n - 1].n++;
    return 0;
}

static int add_trace(struct pb_vector_wrap *wrap)
{
    void *list = wrap->trace;
    const int rc = grow(&list, wrap->n, &wrap->room, sizeof *wrap->trace);
    wrap->trace = list;
    if (rc < 0)
        return rc;
    wrap->trace[wrap->n++] = (struct pb_vector_trace){.first = wrap->n_points};
    return 0;
}

void pb_vector_wrap_reset(struct pb_vector_wrap *wrap, size_t n)
{
    if (wrap->n > n)
        wrap->n_points = wrap->trace[n].first;
    wrap->n = wrap->n > n ? n : wrap->n;
}

void pb_vector_wrap_free(struct pb_vector_wrap *wrap)
{
    free(wrap->point);
    free(wrap->trace);
    *wrap = (struct pb_vector_wrap){0};
}

/* Moves a longitude to the turn nearest to another one. */
static double turned(const struct pb_vector_way *way, double longitude, double near)
{
    return longitude + way->circle * rint((near - longitude) / way->circle);
}

/* Returns the strip, one turn wide, that contains a longitude. */
static double strip_of(const struct pb_vector_way *way, double longitude)
{
    return floor((longitude - way->seam) / way->circle);
}

/* Transforms a longitude and latitude to the scene, as seen from a strip. */
static int onto_scene(const struct pb_vector_way *way, const double at[2], double strip,
                      double out[2])
{
    const double beside = BESIDE * way->circle;
    out[0] = at[0];
    out[1] = at[1];
    if (way->onto == NULL)
        return 0;
    out[0] -= strip * way->circle;
    out[0] = fmin(fmax(out[0], way->seam + beside), way->seam + way->circle - beside);
    out[1] = fmin(fmax(out[1], way->lat[0]), way->lat[1]);
    return pb_vector_move(way->onto, out) ? 0 : -ERANGE;
}

static int find_jump(struct pb_vector_way *way, double latitude, double *out)
{
    const double step = way->circle / STEPS;
    double before[2] = {0, 0}, widest = 0, from = 0, sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        double at[2] = {(i + START) * step, latitude};
        if (!pb_vector_move(way->onto, at))
            return -ERANGE;
        const double far = i > 0 ? hypot(at[0] - before[0], at[1] - before[1]) : 0;
        sum += far;
        if (far > widest) {
            widest = far;
            from = (i - 1 + START) * step;
        }
        memcpy(before, at, sizeof before);
    }
    if (widest < sum / 4) /* all the way around, in equal steps */
        return -ERANGE;
    double to = from + step;
    for (int i = 0; i < SEARCHES_MAX; i++) {
        const double middle = (from + to) / 2;
        double at[3][2] = {{from, latitude}, {middle, latitude}, {to, latitude}};
        for (int k = 0; k < 3; k++)
            if (!pb_vector_move(way->onto, at[k]))
                return -ERANGE;
        if (hypot(at[1][0] - at[0][0], at[1][1] - at[0][1]) >
            hypot(at[2][0] - at[1][0], at[2][1] - at[1][1]))
            to = middle;
        else
            from = middle;
    }
    const double nano = way->circle * (1e-9 / 360);
    *out = rint(from / nano) * nano;
    return 0;
}

/* Finds the latitudes between which the plane has places. */
static void find_latitudes(struct pb_vector_way *way)
{
    static const double ends[] = {90, 90 - 1e-9, 89.999999, 89.9999, 89.99, 89.9, 89, 85, 80};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            double at[2] = {way->seam + way->circle / 3, ends[i] * way->circle / 360};
            way->lat[k] = at[1] = k == 0 ? -at[1] : at[1];
            if (pb_vector_move(way->onto, at) && fabs(at[0]) < 1e9 && fabs(at[1]) < 1e9)
                break;
        }
}

/* Finds the longitude and latitude of samples; drops samples without. */
static void find_spheres(struct pb_vector_way *way, OGRSpatialReferenceH sphere)
{
    OGRCoordinateTransformationH back = pb_vector_to(way->scene, sphere);
    size_t n = 0;
    for (size_t i = 0; back != NULL && i < way->n_samples; i++) {
        struct pb_vector_sample s = way->sample[i];
        memcpy(s.sphere, s.scene, sizeof s.sphere);
        if (pb_vector_move(back, s.sphere))
            way->sample[n++] = s;
    }
    way->n_samples = n;
    if (back != NULL)
        OCTDestroyCoordinateTransformation(back);
}

bool pb_vector_wrap_has_seam(struct pb_vector_way *way)
{
    double seam[2];
    if (way->has_seam >= 0)
        return way->has_seam;
    way->has_seam = 0;
    if (way->geographic || way->circle <= 0)
        return false;
    OGRSpatialReferenceH sphere = OSRCloneGeogCS(way->scene);
    if (sphere == NULL)
        return false;
    way->onto = pb_vector_to(sphere, way->scene);
    way->sphere = pb_vector_to(way->file, sphere);
    if (way->onto != NULL && way->sphere != NULL &&
        find_jump(way, 0.05 * way->circle, &seam[0]) == 0 &&
        find_jump(way, -0.07 * way->circle, &seam[1]) == 0) {
        const double apart = fabs(turned(way, seam[1], seam[0]) - seam[0]);
        way->has_seam = apart < 1e-6 * way->circle;
        way->seam = seam[0];
    }
    if (way->has_seam) {
        double origin[2] = {0, 0};
        find_latitudes(way);
        find_spheres(way, sphere);
        if (way->planar && pb_vector_move(way->sphere, origin))
            way->offset = turned(way, origin[0], 0);
    }
    OSRDestroySpatialReference(sphere);
    return way->has_seam;
}

bool pb_vector_wrap_is_beyond(struct pb_vector_way *way, OGRGeometryH part)
{
    const double *b = way->scene_bounds;
    double end[2][3];
    OGREnvelope e;
    OGR_G_GetEnvelope(part, &e);
    if (way->to != NULL || way->geographic || way->circle <= 0 ||
        (e.MinX >= b[0] && e.MaxX <= b[2]) || !pb_vector_wrap_has_seam(way))
        return false;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            const double at[2] = {way->seam + i * way->circle, (k - 1) * way->circle / 6};
            double out[2];
            if (onto_scene(way, at, 0, out) < 0)
                return false;
            end[i][k] = out[0];
        }
    const double edge = way->px[0] / 2;
    for (int i = 0; i < 2; i++) /* not for a plane whose edges are not straight columns */
        if (fabs(end[i][0] - end[i][1]) > edge || fabs(end[i][2] - end[i][1]) > edge)
            return false;
    return e.MinX < end[0][1] - edge || e.MaxX > end[1][1] + edge;
}

/* Finds the longitude and latitude of a place in the file's system. */
static int find_spot(const struct pb_vector_way *way, struct spot *spot)
{
    memcpy(spot->at, spot->file, sizeof spot->at);
    spot->fixed = way->planar;
    if (!pb_vector_move(way->sphere, spot->at))
        return -ERANGE;
    if (way->planar)
        spot->at[0] = turned(way, spot->at[0], spot->file[0] * way->ratio + way->offset);
    return 0;
}

static void fix(const struct pb_vector_way *way, struct spot *spot, double near)
{
    if (!spot->fixed)
        spot->at[0] = turned(way, spot->at[0], near);
}

/* Returns true if p is near the line a - b, and between its ends. */
static bool is_straight(const double a[2], const double b[2], const double p[2], double tolerance)
{
    const double dx = b[0] - a[0], dy = b[1] - a[1], length2 = dx * dx + dy * dy;
    const double px = p[0] - a[0], py = p[1] - a[1], cross = px * dy - py * dx;
    const double along = px * dx + py * dy, near = tolerance * sqrt(length2);
    if (length2 == 0)
        return px * px + py * py <= tolerance * tolerance;
    return fabs(cross) <= near && along >= -near && along <= length2 + near;
}

/* Returns 1 if the edge between places of one strip needs no vertex in its middle, else 0, or
 * -ERANGE. */
static int is_near(const struct pb_vector_way *way, const struct spot *a, const struct spot *middle,
                   const struct spot *b)
{
    const double strip = strip_of(way, middle->at[0]);
    double at[3][2];
    int rc = onto_scene(way, a->at, strip, at[0]);
    if (rc == 0)
        rc = onto_scene(way, middle->at, strip, at[1]);
    if (rc == 0)
        rc = onto_scene(way, b->at, strip, at[2]);
    return rc < 0 ? rc : is_straight(at[0], at[2], at[1], way->tolerance);
}

/* Finds the crossing of the edge with the seam between its ends, if any. */
static bool meets_seam(const struct pb_vector_way *way, const struct spot *a, const struct spot *b,
                       double *out_longitude)
{
    const double low = fmin(a->at[0], b->at[0]), high = fmax(a->at[0], b->at[0]);
    *out_longitude = way->seam + (strip_of(way, low) + 1) * way->circle;
    return way->onto != NULL && *out_longitude > low && *out_longitude < high;
}

/* Finds the place of the edge at a longitude between those of its ends. */
static int find_crossing(const struct pb_vector_way *way, const struct spot *a,
                         const struct spot *b, double longitude, struct spot *out)
{
    double low = 0, high = 1;
    int rc = 0;
    for (int i = 0; rc == 0 && i < SEARCHES_MAX; i++) {
        const double part = (low + high) / 2;
        for (int k = 0; k < 2; k++)
            out->file[k] = a->file[k] + part * (b->file[k] - a->file[k]);
        rc = find_spot(way, out);
        fix(way, out, a->at[0]);
        if ((out->at[0] < longitude) == (a->at[0] < longitude))
            low = part;
        else
            high = part;
    }
    out->at[0] = longitude;
    out->fixed = true;
    return rc;
}

/* Adds the points of an edge except its first one, and finds the turn of its last. */
static int trace_edge(const struct tracing *t, const struct spot *a, struct spot *b, int depth)
{
    const struct pb_vector_way *way = t->way;
    struct spot middle, crossing;
    double longitude;
    int rc = 0;
    if (t->wrap->n_points >= PB_VECTOR_VERTICES_MAX)
        return -E2BIG;
    for (int k = 0; k < 2; k++)
        middle.file[k] = (a->file[k] + b->file[k]) / 2;
    rc = find_spot(way, &middle);
    if (rc < 0)
        return rc;
    fix(way, &middle, a->at[0]);
    const bool last = depth >= SEARCHES_MAX;
    if (!way->planar && !last && fabs(middle.at[0] - a->at[0]) > NEAR * way->circle)
        goto halve;
    fix(way, b, middle.at[0]);
    if (!way->planar && !last && fabs(b->at[0] - middle.at[0]) > NEAR * way->circle)
        goto halve;
    if (meets_seam(way, a, b, &longitude) && !last) {
        rc = find_crossing(way, a, b, longitude, &crossing);
        if (rc == 0)
            rc = trace_edge(t, a, &crossing, depth + 1);
        return rc < 0 ? rc : trace_edge(t, &crossing, b, depth + 1);
    }
    rc = way->tolerance <= 0 || depth >= HALVINGS_MAX || (way->planar && way->sphere == NULL)
             ? 1
             : is_near(way, a, &middle, b);
    if (rc != 0)
        return rc < 0 ? rc : add_point(t->wrap, b->at);
halve:
    rc = trace_edge(t, a, &middle, depth + 1);
    return rc < 0 ? rc : trace_edge(t, &middle, b, depth + 1);
}

static int trace_ring(const struct tracing *t, OGRGeometryH ring)
{
    const int n = OGR_G_GetPointCount(ring);
    struct spot first = {.fixed = false}, last = first;
    int rc = add_trace(t->wrap);
    for (int i = 0; rc == 0 && i <= n && n > 0; i++) {
        struct spot at = {.file = {OGR_G_GetX(ring, i % n), OGR_G_GetY(ring, i % n)}};
        rc = isfinite(at.file[0]) && isfinite(at.file[1]) ? find_spot(t->way, &at) : -ERANGE;
        if (rc == 0 && i == 0) {
            first = at;
            rc = add_point(t->wrap, at.at);
        } else if (rc == 0 && (at.file[0] != last.file[0] || at.file[1] != last.file[1]))
            rc = trace_edge(t, &last, &at, 0);
        else
            at = last;
        last = at;
        last.fixed = t->way->planar;
    }
    if (rc == 0 && n > 0) {
        struct pb_vector_trace *trace = &t->wrap->trace[t->wrap->n - 1];
        double *end = t->wrap->point[t->wrap->n_points - 1];
        trace->turns = (int)rint((last.at[0] - first.at[0]) / t->way->circle);
        end[0] = first.at[0] + trace->turns * t->way->circle;
        end[1] = first.at[1];
    }
    return rc;
}

/* Counts the edges of the trace that are north of a place, on any turn. */
static size_t edges_north(const struct tracing *t, const struct pb_vector_trace *trace,
                          const double at[2])
{
    const double(*p)[2] = (const double(*)[2])(t->wrap->point + trace->first);
    const double circle = t->way->circle;
    size_t n = 0;
    for (size_t i = 0; i + 1 < trace->n; i++) {
        const double low = fmin(p[i][0], p[i + 1][0]), high = fmax(p[i][0], p[i + 1][0]);
        for (double x = at[0] + circle * ceil((low - at[0]) / circle); x < high; x += circle)
            n +=
                p[i][1] + (x - p[i][0]) * (p[i + 1][1] - p[i][1]) / (p[i + 1][0] - p[i][0]) > at[1];
    }
    return n;
}

/* Finds west, south, east and north of a trace. */
static void extent(const struct pb_vector_wrap *wrap, const struct pb_vector_trace *trace,
                   double out[4])
{
    out[0] = out[1] = INFINITY;
    out[2] = out[3] = -INFINITY;
    for (size_t i = trace->first; i < trace->first + trace->n; i++)
        for (int k = 0; k < 2; k++) {
            out[k] = fmin(out[k], wrap->point[i][k]);
            out[2 + k] = fmax(out[2 + k], wrap->point[i][k]);
        }
}

/* Returns true if a place is inside a trace; the inside of a trace around a pole is the part
 * north of it. */
static bool holds(const struct tracing *t, const struct pb_vector_trace *trace,
                  const double around[4], const double at[2])
{
    const double circle = t->way->circle;
    const double east = at[0] + circle * ceil((around[0] - at[0]) / circle);
    if (trace->turns == 0 && (at[1] < around[1] || at[1] > around[3] || east > around[2]))
        return false;
    return (edges_north(t, trace, at) + (size_t)abs(trace->turns)) % 2 == 1;
}

/* Determines from samples which side of the trace is inside. */
static int find_side(const struct tracing *t, OGRGeometryH ring)
{
    OGREnvelope around;
    double own[4];
    struct pb_vector_trace *trace = &t->wrap->trace[t->wrap->n - 1];
    const struct pb_vector_way *way = t->way;
    struct pb_vector_vote vote = {0, 0};
    if (way->planar) /* both planes are longitude and latitude */
        return 0;
    OGR_G_GetEnvelope(ring, &around);
    extent(t->wrap, trace, own);
    for (size_t i = 0; i < way->n_samples; i++) {
        const struct pb_vector_sample *s = &way->sample[i];
        const bool same = holds(t, trace, own, s->sphere) == pb_vector_holds(way, ring, &around, s);
        vote.same += same;
        vote.other += !same;
    }
    const int rc = pb_vector_side(&vote);
    trace->outside = rc == 1;
    return rc < 0 ? rc : 0;
}

int pb_vector_wrap_ring(struct pb_vector_wrap *wrap, OGRGeometryH ring,
                        const struct pb_vector_way *way)
{
    const struct tracing t = {wrap, way};
    const int rc = trace_ring(&t, ring);
    return rc < 0 ? rc : find_side(&t, ring);
}

/* Context of adding traces as rings of the scene. */
struct adding {
    const struct pb_vector_wrap *wrap;
    const struct pb_vector_way *way;
    struct pb_vector_make *make;
};

static int add_vertices(const struct adding *a, const struct pb_vector_trace *trace, double turn)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i + 1 < trace->n; i++) {
        const double *p = a->wrap->point[trace->first + i];
        rc = a->make->n_vertices >= PB_VECTOR_VERTICES_MAX
                 ? -E2BIG
                 : pb_vector_make_vertex(a->make, p[0] + turn * a->way->circle, p[1]);
    }
    if (rc == 0 && trace->n == 1)
        rc = pb_vector_make_vertex(a->make, a->wrap->point[trace->first][0],
                                   a->wrap->point[trace->first][1]);
    return rc;
}

/* Finds the first and last turn, from west to east, of a trace that overlap the scene. */
static void turns_of(const struct adding *a, const double bounds[4], double *first, double *last)
{
    const struct pb_vector_way *way = a->way;
    const double overlap = OVERLAP_PX * way->px[0];
    *first = ceil((way->low - bounds[2] + overlap) / way->circle);
    *last = floor((way->high - bounds[0] - overlap) / way->circle);
}

/* Adds each turn of a part of a geographic file as a part; a part outside the scene is added
 * once. */
static int add_planar(struct pb_vector_wrap *wrap, const struct adding *a)
{
    double bounds[4] = {INFINITY, 0, -INFINITY, 0}, first, last;
    int rc = 0;
    for (size_t i = 0; i < wrap->n; i++) {
        double own[4];
        extent(wrap, &wrap->trace[i], own);
        bounds[0] = fmin(bounds[0], own[0]);
        bounds[2] = fmax(bounds[2], own[2]);
    }
    turns_of(a, bounds, &first, &last);
    wrap->split |= last > first;
    if (!(first <= last))
        first = last = 0;
    for (double turn = first; rc == 0 && turn <= last; turn++) {
        a->make->part += turn > first;
        for (size_t i = 0; rc == 0 && i < wrap->n; i++) {
            rc = pb_vector_make_ring(a->make);
            if (rc == 0)
                rc = add_vertices(a, &wrap->trace[i], turn);
        }
    }
    return rc;
}

/* Adds a ring around a pole: enough turns to exceed the scene's width, closed beyond the pole. */
static int add_turns(const struct adding *a, const struct pb_vector_trace *trace, double pole)
{
    const struct pb_vector_way *way = a->way;
    double bounds[4], first, last;
    int rc = pb_vector_make_ring(a->make);
    extent(a->wrap, trace, bounds);
    const double sign = trace->turns, wide = bounds[2] - bounds[0];
    first = floor((way->low - wide - bounds[2]) / way->circle);
    last = ceil((way->high + wide - bounds[0]) / way->circle);
    for (double turn = first; rc == 0 && turn <= last; turn += fabs(sign))
        rc = add_vertices(a, trace, sign > 0 ? turn : first + last - turn);
    const struct pb_ring *made = &a->make->ring[a->make->n_rings - 1];
    if (rc == 0) {
        const double from = a->make->xy[made->first][0];
        rc = pb_vector_make_vertex(a->make, a->make->xy[made->first + made->n - 1][0], pole);
        if (rc == 0)
            rc = pb_vector_make_vertex(a->make, from, pole);
    }
    return rc;
}

static int add_box(const struct adding *a, double pole)
{
    const struct pb_vector_way *way = a->way;
    const double west = way->low - 2 * way->circle, east = way->high + 2 * way->circle;
    int rc = pb_vector_make_ring(a->make);
    for (int i = 0; rc == 0 && i < 4; i++)
        rc = pb_vector_make_vertex(a->make, i == 1 || i == 2 ? east : west, i >= 2 ? pole : -pole);
    return rc;
}

static int add_copies(struct pb_vector_wrap *wrap, const struct adding *a,
                      const struct pb_vector_trace *trace)
{
    double bounds[4], first, last;
    int rc = 0;
    extent(wrap, trace, bounds);
    turns_of(a, bounds, &first, &last);
    wrap->split |= last > first;
    if (!(first <= last))
        first = last = 0;
    for (double turn = first; rc == 0 && turn <= last; turn++) {
        rc = pb_vector_make_ring(a->make);
        if (rc == 0)
            rc = add_vertices(a, trace, turn);
    }
    return rc;
}

/* Adds traces to a scene of longitudes and latitudes. */
static int add_geographic(struct pb_vector_wrap *wrap, const struct adding *a)
{
    const double pole = a->way->circle / 4 + BEHIND_PX * a->way->px[1];
    int rc = 0;
    if (a->way->planar)
        return add_planar(wrap, a);
    for (size_t i = 0; rc == 0 && i < wrap->n; i++) {
        const struct pb_vector_trace *trace = &wrap->trace[i];
        wrap->split |= trace->turns != 0;
        rc = trace->turns != 0 ? add_turns(a, trace, pole) : add_copies(wrap, a, trace);
        if (rc == 0 && trace->outside)
            rc = add_box(a, pole);
    }
    return rc;
}

/* Latitudes at which rings cross a seam. */
struct crossings {
    double *at;
    size_t n, room;
};

static int add_crossing(struct crossings *of, double latitude)
{
    void *list = of->at;
    const int rc = grow(&list, of->n, &of->room, sizeof *of->at);
    of->at = list;
    if (rc == 0)
        of->at[of->n++] = latitude;
    return rc;
}

static int add_open(struct pb_vector_make *make)
{
    const int rc = pb_vector_make_ring(make);
    if (rc == 0)
        make->ring[make->n_rings - 1].is_open = true;
    return rc;
}

static int add_onto(const struct adding *a, const double at[2], double strip)
{
    double out[2];
    const int rc = onto_scene(a->way, at, strip, out);
    if (rc == 0 && a->make->n_vertices >= PB_VECTOR_VERTICES_MAX)
        return -E2BIG;
    return rc < 0 ? rc : pb_vector_make_vertex(a->make, out[0], out[1]);
}

/* Adds the points of a line in longitude and latitude except its first one. */
static int add_line(const struct adding *a, const double from[2], const double to[2], double strip,
                    int halvings)
{
    const double middle[2] = {(from[0] + to[0]) / 2, (from[1] + to[1]) / 2};
    double at[3][2];
    int rc = onto_scene(a->way, from, strip, at[0]);
    if (rc == 0)
        rc = onto_scene(a->way, middle, strip, at[1]);
    if (rc == 0)
        rc = onto_scene(a->way, to, strip, at[2]);
    if (rc < 0)
        return rc;
    if (halvings == 0 || is_straight(at[0], at[2], at[1], a->way->tolerance))
        return add_onto(a, to, strip);
    rc = add_line(a, from, middle, strip, halvings - 1);
    return rc < 0 ? rc : add_line(a, middle, to, strip, halvings - 1);
}

static int add_piece(const struct adding *a, const double from[2], const double to[2], double strip)
{
    int rc = add_open(a->make);
    if (rc == 0)
        rc = add_onto(a, from, strip);
    return rc < 0 ? rc : add_line(a, from, to, strip, HALVINGS_MAX);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Adds the pieces of the strip's western or eastern edge that are inside. */
static int add_edge(const struct adding *a, struct crossings *of, double strip, bool east)
{
    const double longitude = a->way->seam + (strip + east) * a->way->circle;
    int rc = 0;
    if (of->n > 1)
        qsort(of->at, of->n, sizeof *of->at, by_value);
    for (size_t i = 0; rc == 0 && i + 1 < of->n; i += 2) {
        const double from[2] = {longitude, of->at[i]}, to[2] = {longitude, of->at[i + 1]};
        rc = add_piece(a, from, to, strip);
    }
    return rc;
}

/* A strip of the map, or all of them overlaid. */
struct strip {
    bool all;
    double number;                /* unused if `all` */
    struct crossings crossing[2]; /* western and eastern edge; if `all`, the first has both */
};

/* Adds the crossing at a point between the strips of two edges. */
static int cross(struct strip *strip, double before, double after, double latitude)
{
    const double edge = fmax(before, after);
    if (before == after)
        return 0;
    if (strip->all || edge == strip->number)
        return add_crossing(&strip->crossing[0], latitude);
    return edge == strip->number + 1 ? add_crossing(&strip->crossing[1], latitude) : 0;
}

/* Returns the strip of an edge; an edge along the seam is in the strip of the edge before it. */
static double strip_of_edge(const struct adding *a, const double from[2], const double to[2],
                            double before)
{
    const double own = strip_of(a->way, (from[0] + to[0]) / 2);
    const bool along = from[0] == to[0] && from[0] == a->way->seam + own * a->way->circle;
    return along && before == own - 1 ? before : own;
}

/* Returns the strip of the last edge of a trace, because its first edge follows it. */
static double last_strip(const struct adding *a, const struct pb_vector_trace *trace)
{
    const double(*p)[2] = (const double(*)[2])(a->wrap->point + trace->first);
    double strip = strip_of(a->way, (p[0][0] + p[1][0]) / 2);
    for (size_t i = 0; i + 1 < trace->n; i++)
        strip = strip_of_edge(a, p[i], p[i + 1], strip);
    return strip - trace->turns;
}

/* Adds the edges of a trace that are in the strip. */
static int add_fragments(const struct adding *a, const struct pb_vector_trace *trace,
                         struct strip *strip)
{
    const double(*p)[2] = (const double(*)[2])(a->wrap->point + trace->first);
    double before = trace->n > 1 ? last_strip(a, trace) : 0;
    bool open = false;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i + 1 < trace->n; i++) {
        const double own = strip_of_edge(a, p[i], p[i + 1], before);
        rc = cross(strip, before, own, p[i][1]);
        open = open && own == before;
        before = own;
        if (!strip->all && own != strip->number)
            continue;
        if (rc == 0 && !open) {
            rc = add_open(a->make);
            if (rc == 0)
                rc = add_onto(a, p[i], own);
        }
        open = true;
        if (rc == 0)
            rc = add_onto(a, p[i + 1], own);
    }
    return rc;
}

/* Adds the strip's end at a pole, which is an edge of the inside. */
static int add_pole(const struct adding *a, struct strip *strip, double latitude)
{
    const double number = strip->number, circle = a->way->circle;
    const double from[2] = {a->way->seam + number * circle, latitude};
    const double to[2] = {a->way->seam + (number + 1) * circle, latitude};
    int rc = add_piece(a, from, to, number);
    for (int k = 0; rc == 0 && k < (strip->all ? 1 : 2); k++)
        rc = add_crossing(&strip->crossing[k], latitude);
    return rc;
}

static int add_strip(struct pb_vector_wrap *wrap, const struct adding *a, struct strip *strip)
{
    bool pole[2] = {false, false};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < wrap->n; i++) {
        const struct pb_vector_trace *trace = &wrap->trace[i];
        rc = add_fragments(a, trace, strip);
        pole[0] ^= trace->outside;
        pole[1] ^= trace->outside ^ (trace->turns % 2 != 0);
    }
    for (int k = 0; rc == 0 && k < 2; k++)
        if (pole[k])
            rc = add_pole(a, strip, a->way->lat[k]);
    wrap->split |= strip->crossing[0].n > 0 || strip->crossing[1].n > 0;
    for (int k = 0; rc == 0 && k < 2; k++)
        rc = add_edge(a, &strip->crossing[strip->all ? 0 : k], strip->number, k == 1);
    free(strip->crossing[0].at);
    free(strip->crossing[1].at);
    return rc;
}

/* Adds traces to a scene with a seam. */
static int add_strips(struct pb_vector_wrap *wrap, const struct adding *a)
{
    struct strip all = {.all = true};
    double first = INFINITY, last = -INFINITY;
    int rc = 0;
    if (!a->way->planar)
        return add_strip(wrap, a, &all);
    for (size_t i = 0; i < wrap->n; i++) {
        double own[4];
        extent(wrap, &wrap->trace[i], own);
        first = fmin(first, strip_of(a->way, own[0]));
        last = fmax(last, strip_of(a->way, own[2]));
    }
    for (double k = first; rc == 0 && k <= last; k++) {
        struct strip strip = {.number = k};
        a->make->part += k > first;
        rc = add_strip(wrap, a, &strip);
    }
    return rc;
}

int pb_vector_wrap_add(struct pb_vector_wrap *wrap, const struct pb_vector_way *way,
                       struct pb_vector_make *make)
{
    const struct adding a = {wrap, way, make};
    return way->geographic ? add_geographic(wrap, &a) : add_strips(wrap, &a);
}
