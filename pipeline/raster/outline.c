/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The edge of the image is a closed curve on the sphere, oriented so that the image is on its
 * left. Its longitudes are made continuous, and it is cut wherever it crosses the antimeridian.
 * The pieces are in the rectangle of longitudes and latitudes; where a piece leaves it, the
 * outline follows the rectangle's border, counter-clockwise, to the next piece that enters. This
 * adds the poles inside the image, one or both, and no others: whether a pole is added follows
 * from the side of the curve on which the image is, not from latitudes. A curve that is closed
 * inside the rectangle and clockwise is a hole in the world. */
#include "pipeline/raster/outline.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    NODES = 512,   /* points along the edge, at most */
    PASSES = 48,   /* maximum of refinements, each of which may halve the distance of points */
    HALVINGS = 40, /* bisections to find the Earth's edge: far below a pixel */
    FEW = 6,       /* points per axis that are sampled inside the image, */
    MANY = 24,     /* and if some of these are not on the Earth */
    VERTICES = NODES + 96
};
#define PART    5000.0 /* fraction of the image's extent: tolerance of the outline */
#define POLE    1e-9   /* degrees: a point this near to a pole is on it */
#define ON_LINE 1e-9   /* degrees: a point this near to the antimeridian is on it */
#define SLIVER  1e-7   /* degrees: narrower polygons are omitted */
#define WORLD   1e-5   /* degrees below a full turn that still count as all longitudes */
#define RADIANS (M_PI / 180)

/* Returns the difference of longitudes in -180 .. 180. */
static double turned(double degrees)
{
    return degrees - 360 * round(degrees / 360);
}

static bool is_somewhere(const double *lonlat)
{
    return isfinite(lonlat[0]) && isfinite(lonlat[1]);
}

static bool is_pole(const struct pb_outline *o, const double *lonlat)
{
    return !o->is_plane && fabs(lonlat[1]) >= 90 - POLE;
}

/* --- places ----------------------------------------------------------------------------------- */

static void place(const struct pb_outline *o, size_t n, double (*xy)[2])
{
    o->place(o->of, n, xy);
    for (size_t i = 0; i < n; i++) {
        double *p = xy[i];
        if (!is_somewhere(p) || fabs(p[0]) > 720 || fabs(p[1]) > 91)
            p[0] = p[1] = (double)NAN;
        else /* A grid whose points include the pole extends half a pixel past it. */
            p[1] = fmin(fmax(p[1], -90), 90);
    }
}

static void on_sphere(const double *lonlat, double out[3])
{
    const double lon = lonlat[0] * RADIANS, lat = lonlat[1] * RADIANS;
    out[0] = cos(lat) * cos(lon);
    out[1] = cos(lat) * sin(lon);
    out[2] = sin(lat);
}

/* Returns a positive number if the path from a to b to c turns left on the ground. */
static double turn_of(const double *a, const double *b, const double *c)
{
    double p[3], q[3], r[3];
    on_sphere(a, p);
    on_sphere(b, q);
    on_sphere(c, r);
    for (int i = 0; i < 3; i++) {
        q[i] -= p[i];
        r[i] -= p[i];
    }
    return p[0] * (q[1] * r[2] - q[2] * r[1]) + p[1] * (q[2] * r[0] - q[0] * r[2]) +
           p[2] * (q[0] * r[1] - q[1] * r[0]);
}

/* Sample points inside the image that are on the Earth. */
struct inside {
    int n, left; /* left: positive if columns, then rows backwards turn left, as on a map */
    double middle[2], nearest[2]; /* mean of the points, and the point nearest to `aim` */
    double least;                 /* distance of `nearest` */
};

/* Adds a point: xy is its pixel, p[0] its place, p[1] and p[2] the places to the right and
 * above. */
static void add_inside(const struct pb_outline *o, const double aim[2], const double xy[2],
                       double (*p)[2], struct inside *out)
{
    const double far = hypot((xy[0] - aim[0]) / o->w, (xy[1] - aim[1]) / o->h);
    if (!is_somewhere(p[0]))
        return;
    out->n++;
    for (int k = 0; k < 2; k++) {
        out->middle[k] += xy[k];
        out->nearest[k] = far < out->least ? xy[k] : out->nearest[k];
    }
    out->least = fmin(out->least, far);
    if (is_somewhere(p[1]) && is_somewhere(p[2])) {
        const double turn = turn_of(p[0], p[1], p[2]);
        out->left += (turn > 0) - (turn < 0);
    }
}

/* Samples side x side points. */
static void look_inside(const struct pb_outline *o, int side, const double aim[2],
                        struct inside *out)
{
    *out = (struct inside){.least = INFINITY};
    for (int row = 0; row < side; row++) {
        double at[3 * MANY][2], xy[MANY][2];
        for (int i = 0; i < 3 * side; i++) {
            const int column = i / 3;
            at[i][0] = o->w * (column + 0.5) / side + (i % 3 == 1 ? o->w / 256 : 0);
            at[i][1] = o->h * (row + 0.5) / side - (i % 3 == 2 ? o->h / 256 : 0);
            if (i % 3 == 0)
                memcpy(xy[column], at[i], sizeof xy[0]);
        }
        place(o, 3 * (size_t)side, at);
        for (int i = 0; i < side; i++)
            add_inside(o, aim, xy[i], &at[3 * i], out);
    }
    for (int k = 0; k < 2 && out->n > 0; k++)
        out->middle[k] /= out->n;
}

/* --- along the edge --------------------------------------------------------------------------- */

struct node {
    /* position along the edge; 0 .. 3 = corners, from the upper left, counter-clockwise */
    double t;
    double lonlat[2];
    bool is_fine; /* the line to the next node follows the edge */
};

struct edge {
    const struct pb_outline *outline;
    double seed[2]; /* a place inside the image that is on the Earth */
    double off;     /* tolerance of lines in degrees */
    struct node node[NODES];
    size_t n;
};

static void pixel_at(const struct pb_outline *o, double t, double xy[2])
{
    const double corner[5][2] = {{0, 0}, {0, o->h}, {o->w, o->h}, {o->w, 0}, {0, 0}};
    const int i = (int)t % 4;
    const double f = t - floor(t);
    for (int k = 0; k < 2; k++)
        xy[k] = corner[i][k] + f * (corner[i + 1][k] - corner[i][k]);
}

/* Replaces a place beyond the Earth by the last place on the Earth on the line from the seed to
 * it. */
static void pull_in(const struct edge *e, const double beyond[2], double out[2])
{
    double low = 0, high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        const double f = i == 0 ? 0 : (low + high) / 2;
        double at[1][2];
        for (int k = 0; k < 2; k++)
            at[0][k] = e->seed[k] + f * (beyond[k] - e->seed[k]);
        place(e->outline, 1, at);
        if (is_somewhere(at[0])) {
            memcpy(out, at[0], sizeof at[0]);
            low = f;
        } else {
            high = f;
        }
    }
}

/* Fills in the places of n nodes. Returns false if one is beyond the Earth and must not be. */
static bool find_nodes(const struct edge *e, struct node *node, size_t n)
{
    double xy[NODES][2], at[2];
    for (size_t i = 0; i < n; i++)
        pixel_at(e->outline, node[i].t, xy[i]);
    place(e->outline, n, xy);
    for (size_t i = 0; i < n; i++) {
        memcpy(node[i].lonlat, xy[i], sizeof xy[i]);
        if (is_somewhere(xy[i]))
            continue;
        if (!e->outline->has_limb)
            return false;
        pixel_at(e->outline, node[i].t, at);
        pull_in(e, at, node[i].lonlat);
    }
    return true;
}

/* Degrees of longitude from one place to the other; 0 if one is a pole, where every longitude is
 * valid. */
static double step_of(const struct pb_outline *o, const double *a, const double *b)
{
    if (is_pole(o, a) || is_pole(o, b))
        return 0;
    return o->is_plane ? b[0] - a[0] : turned(b[0] - a[0]);
}

/* Returns true if a line, whose middle is known, follows the edge. */
static bool is_fine(const struct edge *e, const struct node *a, const struct node *middle,
                    const struct node *b)
{
    const struct pb_outline *const o = e->outline;
    const double *const m = middle->lonlat;
    const double one = step_of(o, a->lonlat, m), other = step_of(o, m, b->lonlat);
    const double off_lon = (one - other) / 2 * cos(m[1] * RADIANS);
    const double off_lat = m[1] - (a->lonlat[1] + b->lonlat[1]) / 2;
    if (!o->is_plane && (fabs(one) > 60 || fabs(other) > 60))
        return false;
    return hypot(off_lon, off_lat) <= e->off;
}

/* Inserts a node in the middle of each line that is not fine, as long as there is room. Returns
 * 1: a node was inserted; 0; -ENODATA. */
static int refine(struct edge *e)
{
    struct node middle[NODES], all[NODES];
    size_t n = 0, used = 0, m = 0;
    for (size_t i = 0; i < e->n; i++)
        if (!e->node[i].is_fine) {
            const double next = i + 1 < e->n ? e->node[i + 1].t : 4;
            middle[n++] = (struct node){.t = (e->node[i].t + next) / 2};
        }
    if (!find_nodes(e, middle, n))
        return -ENODATA;
    for (size_t i = 0; i < e->n; i++) {
        struct node *const a = &e->node[i];
        const struct node *const b = &e->node[(i + 1) % e->n];
        const bool looked_at = !a->is_fine;
        const struct node *const half = looked_at ? &middle[m++] : NULL;
        a->is_fine = !looked_at || is_fine(e, a, half, b);
        all[used++] = *a;
        if (!a->is_fine && used + (e->n - i) < NODES) {
            all[used - 1].is_fine = false;
            all[used++] = *half;
        }
    }
    const bool grew = used > e->n;
    memcpy(e->node, all, used * sizeof all[0]);
    e->n = used;
    return grew;
}

/* Largest distance of places on the edge, in degrees. */
static double extent_of(const struct edge *e)
{
    double a[3], b[3], most = 0;
    on_sphere(e->node[0].lonlat, a);
    for (size_t i = 1; i < e->n; i++) {
        on_sphere(e->node[i].lonlat, b);
        most = fmax(most, hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]));
    }
    return most / RADIANS;
}

static void reverse(struct edge *e)
{
    for (size_t i = 0; i < e->n / 2; i++) {
        const struct node swap = e->node[i];
        e->node[i] = e->node[e->n - 1 - i];
        e->node[e->n - 1 - i] = swap;
    }
}

static int follow(const struct pb_outline *o, struct edge *e)
{
    const double middle[2] = {o->w / 2, o->h / 2};
    struct inside inside;
    int rc = 1;
    look_inside(o, FEW, middle, &inside);
    if (inside.n < FEW * FEW) {
        look_inside(o, MANY, middle, &inside);
        /* Sample again around the middle of the part on the Earth. */
        const double aim[2] = {inside.middle[0], inside.middle[1]};
        look_inside(o, MANY, aim, &inside);
    }
    if (inside.n == 0 || inside.left == 0)
        return -ENODATA;
    e->outline = o;
    memcpy(e->seed, inside.nearest, sizeof e->seed);
    e->n = 4 * PB_OUTLINE_EDGE;
    for (size_t i = 0; i < e->n; i++)
        e->node[i] = (struct node){.t = (double)i / PB_OUTLINE_EDGE};
    if (!find_nodes(e, e->node, e->n))
        return -ENODATA;
    e->off = fmax(extent_of(e) / PART, SLIVER);
    for (int i = 0; i < PASSES && rc > 0; i++)
        rc = refine(e);
    if (inside.left < 0)
        reverse(e);
    return rc < 0 ? rc : 0;
}

/* --- continuous longitudes -------------------------------------------------------------------- */

/* A ring with continuous longitudes; its last point differs from its first one by whole turns at
 * most. */
struct ring {
    double at[VERTICES][2];
    size_t n;
    int turns; /* whole turns by which its end is east of its beginning */
};

static bool add(struct ring *r, double lon, double lat)
{
    if (r->n == VERTICES)
        return false;
    r->at[r->n][0] = lon;
    r->at[r->n][1] = lat;
    r->n++;
    return true;
}

/* Adds points through a pole: along its latitude, with the image on the left. */
static bool add_pole(struct ring *r, double next_lon, double lat)
{
    const double lon = r->at[r->n - 1][0], sign = lat > 0 ? -1 : 1, pole = lat > 0 ? 90 : -90;
    double turn = sign * (next_lon - lon);
    turn -= 360 * floor(turn / 360);
    if (turn < 1e-6)
        turn = 360;
    return add(r, lon, pole) && add(r, lon + sign * turn, pole);
}

static int unroll(const struct edge *e, struct ring *r)
{
    const struct pb_outline *const o = e->outline;
    size_t first = 0;
    r->n = 0;
    while (first < e->n && is_pole(o, e->node[first].lonlat))
        first++;
    if (first == e->n)
        return 0; /* no extent: the whole Earth */
    bool has_room = add(r, e->node[first].lonlat[0], e->node[first].lonlat[1]);
    for (size_t i = 1; i <= e->n && has_room; i++) {
        const double *p = e->node[(first + i) % e->n].lonlat, *pole = p;
        for (; is_pole(o, p); i++)
            p = e->node[(first + i + 1) % e->n].lonlat;
        if (p != pole)
            has_room = add_pole(r, p[0], pole[1]);
        const double lon = r->at[r->n - 1][0];
        has_room = has_room && add(r, o->is_plane ? p[0] : lon + turned(p[0] - lon), p[1]);
    }
    if (!has_room)
        return -ENODATA;
    r->n--;
    r->turns = (int)round((r->at[r->n][0] - r->at[0][0]) / 360);
    return 0;
}

static double area_of(const double (*at)[2], size_t n)
{
    double area = 0;
    for (size_t i = 0; i < n; i++) {
        const double *a = at[i], *b = at[(i + 1) % n];
        area += (a[0] - at[0][0]) * (b[1] - at[0][1]) - (b[0] - at[0][0]) * (a[1] - at[0][1]);
    }
    return area / 2;
}

/* west, south, east, north */
static void box_of(const double (*at)[2], size_t n, double out[4])
{
    out[0] = out[1] = INFINITY;
    out[2] = out[3] = -INFINITY;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            out[k] = fmin(out[k], at[i][k]);
            out[2 + k] = fmax(out[2 + k], at[i][k]);
        }
}

/* --- rings of a footprint --------------------------------------------------------------------- */

static bool put(struct pb_footprint *f, double lon, double lat)
{
    const size_t begin = f->first[f->n_rings];
    if (f->n > begin && f->lonlat[f->n - 1][0] == lon && f->lonlat[f->n - 1][1] == lat)
        return true;
    if (f->n == PB_FOOTPRINT_POINTS)
        return false;
    f->lonlat[f->n][0] = lon;
    f->lonlat[f->n][1] = lat;
    f->n++;
    return true;
}

/* Ends a ring; drops it if it is a sliver. */
static bool close_ring(struct pb_footprint *f)
{
    const size_t begin = f->first[f->n_rings];
    double box[4];
    if (f->n == begin)
        return true;
    const double lonlat[2] = {f->lonlat[begin][0], f->lonlat[begin][1]};
    if (f->n_rings == PB_FOOTPRINT_RINGS || !put(f, lonlat[0], lonlat[1]))
        return false;
    box_of((const double(*)[2]) & f->lonlat[begin], f->n - begin, box);
    if (f->n - begin < 4 || box[2] - box[0] < SLIVER || box[3] - box[1] < SLIVER)
        f->n = begin;
    else
        f->first[++f->n_rings] = f->n;
    return true;
}

static bool put_box(struct pb_footprint *f, double south, double north)
{
    return put(f, -180, south) && put(f, 180, south) && put(f, 180, north) && put(f, -180, north) &&
           close_ring(f);
}

/* --- cutting at the antimeridian -------------------------------------------------------------- */

/* Strip k is the range of longitudes -180 + 360 k .. 180 + 360 k. */
struct piece {
    size_t first, n;        /* points of the ring, cyclic */
    double strip, from, to; /* positions along the border where it enters and leaves */
    bool is_used;
};

/* Inserts a point wherever the ring crosses a border of strips, and moves points near a border
 * onto it. */
static bool cross(const struct ring *r, struct ring *out)
{
    out->n = 0;
    out->turns = r->turns;
    for (size_t i = 0; i < r->n; i++) {
        const double *a = r->at[i];
        const double b[2] = {i + 1 < r->n ? r->at[i + 1][0] : r->at[0][0] + 360 * r->turns,
                             r->at[(i + 1) % r->n][1]};
        const double line = 180 + 360 * round((a[0] - 180) / 360);
        const double lon = fabs(a[0] - line) < ON_LINE ? line : a[0];
        const double sign = b[0] > lon ? 1 : -1;
        if (!add(out, lon, a[1]))
            return false;
        double next = sign > 0 ? floor((lon - 180) / 360) + 1 : ceil((lon - 180) / 360) - 1;
        for (; sign * (b[0] - (180 + 360 * next)) > ON_LINE; next += sign) {
            const double at = 180 + 360 * next;
            if (!add(out, at, a[1] + (b[1] - a[1]) * (at - a[0]) / (b[0] - a[0])))
                return false;
        }
    }
    return true;
}

/* Returns the strip of the line from point i to the next. A line along a border is in the strip
 * on its left. */
static double strip_of(const struct ring *r, size_t i)
{
    const double *a = r->at[i], *b = r->at[(i + 1) % r->n];
    const double end = i + 1 < r->n ? b[0] : b[0] + 360 * r->turns;
    if (a[0] == end && remainder(a[0] - 180, 360) == 0)
        return b[1] > a[1] ? (a[0] - 180) / 360 : (a[0] + 180) / 360;
    return floor(((a[0] + end) / 2 + 180) / 360);
}

/* Position of a point along the border, counter-clockwise from the lower right corner: in
 * degrees, 1080 is a full circuit. */
static double along(double lon, double lat)
{
    return lon > 0 ? 90 + lat : 540 + 90 - lat;
}

static const double *point_of(const struct ring *r, const struct piece *p, size_t k, double out[2])
{
    const size_t i = (p->first + k) % r->n;
    out[0] = r->at[i][0] - 360 * p->strip;
    if (p->first + k >= r->n)
        out[0] += 360 * r->turns;
    out[1] = r->at[i][1];
    return out;
}

/* Splits a ring with points on all borders into pieces. Returns their count; 0: it crosses no
 * border; -ENODATA. */
static int split(const struct ring *r, struct piece *piece)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const double before = i > 0 ? strip_of(r, i - 1) : strip_of(r, r->n - 1) - r->turns;
        const double strip = strip_of(r, i);
        if (before == strip)
            continue;
        if (n == PB_FOOTPRINT_RINGS)
            return -ENODATA;
        piece[n++] = (struct piece){.first = i, .strip = strip};
    }
    for (size_t i = 0; i < n; i++) {
        double at[2];
        piece[i].n = (piece[(i + 1) % n].first + r->n - piece[i].first - 1) % r->n + 2;
        point_of(r, &piece[i], 0, at);
        piece[i].from = along(at[0], at[1]);
        point_of(r, &piece[i], piece[i].n - 1, at);
        piece[i].to = along(at[0], at[1]);
    }
    return (int)n;
}

/* Distance along the border from one position to another. */
static double way_to(double from, double to)
{
    const double way = to - from - 1080 * floor((to - from) / 1080);
    return way > 1080 - ON_LINE ? 0 : way;
}

/* Follows the border, past corners, to the piece that enters next. */
static bool go_on(struct pb_footprint *f, const struct piece *piece, size_t n, size_t *at)
{
    static const double corner[4][3] = {
        {180, 180, 90}, {540, -180, 90}, {720, -180, -90}, {1080, 180, -90}};
    const double from = piece[*at].to;
    bool has_room = true;
    size_t next = 0;
    for (size_t i = 1; i < n; i++)
        if (way_to(from, piece[i].from) < way_to(from, piece[next].from))
            next = i;
    const double way = way_to(from, piece[next].from);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 4; i++) {
            const double there = corner[i][0] + 1080 * turn - from;
            if (there > 0 && there < way)
                has_room = has_room && put(f, corner[i][1], corner[i][2]);
        }
    *at = next;
    return has_room;
}

static int join(const struct ring *r, struct piece *piece, size_t n, struct pb_footprint *f)
{
    for (size_t start = 0; start < n; start++) {
        bool has_room = true;
        for (size_t i = start; !piece[i].is_used && has_room;) {
            for (size_t k = 0; k < piece[i].n && has_room; k++) {
                double at[2];
                point_of(r, &piece[i], k, at);
                has_room = put(f, at[0], at[1]);
            }
            piece[i].is_used = true;
            has_room = has_room && go_on(f, piece, n, &i);
        }
        if (!has_room || !close_ring(f))
            return -ENODATA;
    }
    return 0;
}

/* Adds a ring that crosses no border: an area, or a hole in the world. */
static int take_closed(const struct ring *r, struct pb_footprint *f)
{
    const bool is_hole = area_of(r->at, r->n) < 0;
    const double strip = strip_of(r, 0);
    if (is_hole && !put_box(f, -90, 90))
        return -ENODATA;
    for (size_t i = 0; i < r->n; i++)
        if (!put(f, r->at[i][0] - 360 * strip, r->at[i][1]))
            return -ENODATA;
    if (!close_ring(f))
        return -ENODATA;
    f->has_hole = is_hole && f->n_rings == 2;
    return 0;
}

/* Returns true if the ring fills all longitudes between two latitudes, or overlaps itself. */
static bool is_belt(const struct pb_outline *o, const struct ring *r, const double box[4])
{
    const double wide = box[2] - box[0], high = box[3] - box[1];
    return r->turns == 0 && wide >= 360 - WORLD &&
           (o->is_plane || area_of(r->at, r->n) > (1 - 1 / PART) * wide * high);
}

static int cut(const struct pb_outline *o, const struct ring *r, struct pb_footprint *f)
{
    struct ring crossed;
    struct piece piece[PB_FOOTPRINT_RINGS];
    double box[4];
    box_of(r->at, r->n, box);
    const bool is_small = (box[2] - box[0]) * (box[3] - box[1]) < 1e-6;
    const bool is_world = r->n == 0 || (r->turns == 0 && is_small && area_of(r->at, r->n) < 0);
    if (is_world)
        return put_box(f, -90, 90) ? 0 : -ENODATA;
    if (is_belt(o, r, box))
        return put_box(f, box[1], box[3]) ? 0 : -ENODATA;
    if (!cross(r, &crossed))
        return -ENODATA;
    const int n = split(&crossed, piece);
    return n < 0 ? n : n == 0 ? take_closed(&crossed, f) : join(&crossed, piece, (size_t)n, f);
}

/* --- the box ---------------------------------------------------------------------------------- */

static void sort_by_west(double (*span)[2], size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && span[k][0] < span[k - 1][0]; k--) {
            const double swap[2] = {span[k][0], span[k][1]};
            memcpy(span[k], span[k - 1], sizeof swap);
            memcpy(span[k - 1], swap, sizeof swap);
        }
}

/* Finds the box: all longitudes except the widest gap. */
static void bound(struct pb_footprint *f)
{
    double span[PB_FOOTPRINT_RINGS][2], box[4], widest = -1;
    f->bbox[1] = INFINITY;
    f->bbox[3] = -INFINITY;
    for (size_t i = 0; i < f->n_rings; i++) {
        box_of((const double(*)[2]) & f->lonlat[f->first[i]], f->first[i + 1] - f->first[i], box);
        span[i][0] = box[0];
        span[i][1] = box[2];
        f->bbox[1] = fmin(f->bbox[1], box[1]);
        f->bbox[3] = fmax(f->bbox[3], box[3]);
    }
    sort_by_west(span, f->n_rings);
    double east = span[0][1];
    for (size_t i = 1; i <= f->n_rings; i++) {
        const bool last = i == f->n_rings;
        const double gap = (last ? span[0][0] + 360 : span[i][0]) - east;
        if (gap > widest) {
            widest = gap;
            f->bbox[0] = last ? span[0][0] : span[i][0];
            f->bbox[2] = east;
        }
        east = last ? east : fmax(east, span[i][1]);
    }
    if (widest <= WORLD) {
        f->bbox[0] = -180;
        f->bbox[2] = 180;
    }
}

/* Places the corners. */
static void place_corners(const struct pb_outline *o, struct pb_footprint *f)
{
    double xy[4][2];
    for (int i = 0; i < 4; i++)
        pixel_at(o, i, xy[i]);
    place(o, 4, xy);
    f->has_corners = true;
    for (int i = 0; i < 4; i++) {
        const double from = i > 0 ? xy[i - 1][0] : 0;
        if (!o->is_plane)
            xy[i][0] = from + turned(xy[i][0] - from);
        f->has_corners = f->has_corners && is_somewhere(xy[i]);
    }
    memcpy(f->corner, xy, sizeof xy);
}

int pb_outline_footprint(const struct pb_outline *outline, struct pb_footprint *out_footprint)
{
    struct pb_footprint footprint = {.n = 0};
    struct edge edge;
    struct ring ring = {.n = 0};
    int rc = follow(outline, &edge);
    rc = rc < 0 ? rc : unroll(&edge, &ring);
    rc = rc < 0 ? rc : cut(outline, &ring, &footprint);
    if (rc < 0 || footprint.n_rings == 0)
        return -ENODATA;
    bound(&footprint);
    place_corners(outline, &footprint);
    *out_footprint = footprint;
    return 0;
}

int pb_outline_keep_half(struct pb_footprint *footprint, bool north)
{
    struct pb_footprint out = {.n = 0};
    const double sign = north ? 1 : -1;
    for (size_t i = 0; i < footprint->n_rings; i++) {
        bool has_room = true;
        for (size_t k = footprint->first[i]; k + 1 < footprint->first[i + 1] && has_room; k++) {
            const double *a = footprint->lonlat[k], *b = footprint->lonlat[k + 1];
            if (sign * a[1] >= 0)
                has_room = put(&out, a[0], a[1]);
            if ((a[1] > 0 && b[1] < 0) || (a[1] < 0 && b[1] > 0))
                has_room = has_room && put(&out, a[0] - a[1] * (b[0] - a[0]) / (b[1] - a[1]), 0);
        }
        if (!has_room || !close_ring(&out))
            return -ENODATA;
    }
    if (out.n_rings == 0)
        return -ENODATA;
    out.has_hole = footprint->has_hole && out.n_rings == 2;
    out.has_corners = footprint->has_corners;
    memcpy(out.corner, footprint->corner, sizeof out.corner);
    bound(&out);
    *footprint = out;
    return 0;
}
