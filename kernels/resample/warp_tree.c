/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Making the quadtree of positions: level by level, so that points are asked for in large batches.
 * A square knows 3 x 3 positions, which are interpolated by parabolas. It asks for the others of 5
 * x 5: they say how far off that is, and are what its quarters know when it is cut. */
#include "kernels/resample/warp_tree.h"
#include "kernels/resample/warp_pixel.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_LEAST 64
#define CELLS_MOST                                                                                 \
    64                  /* along an axis, that the tree begins with; larger images: larger squares \
                         */
#define BATCH       128 /* squares */
#define EMPTY_SIDE  64  /* a square without any position is given up from here on */
#define EMPTY_PART  8.0 /* .. or from this part of the squares that the tree begins with */
#define POINTS_MOST ((size_t)1 << 23) /* asked for, before a larger error is allowed */
#define KERNEL_PX   4.0               /* of the widest kernel, and one more */
#define PROBES      16
#define QUARTERS    4
#define FAR         8.0 /* changes from point to point: twice the width of a square */

/* A square whose entry is not known yet. */
struct square {
    size_t slot; /* in warp->tree */
    double x, y;
    struct pb_warp_leaf known;
};

struct squares {
    struct square *at;
    size_t n, room;
};

struct maker {
    struct pb_warp *warp;
    pb_warp_points *points;
    void *of;
    double error_px, beyond_px;
    size_t asked; /* points */
    size_t tree_room, leaf_room;
    struct squares now, next;
    double size;    /* of the squares of this level */
    bool has_areas; /* torn pixels are looked for */
    struct pb_warp_torn *torn;
    size_t n_torn, torn_room;
};

static int grow(void **at, size_t *room, size_t n, size_t bytes)
{
    if (n < *room)
        return 0;
    const size_t more = *room ? 2 * *room : 1024;
    void *const larger = realloc(*at, more * bytes);

    if (larger == NULL)
        return -ENOMEM;
    *at = larger;
    *room = more;
    return 0;
}

static bool is_somewhere(double x, double y)
{
    return isfinite(x) && isfinite(y);
}

static struct pb_warp_box no_box(void)
{
    return (struct pb_warp_box){INFINITY, INFINITY, -INFINITY, -INFINITY};
}

static void box_add(struct pb_warp_box *box, double x, double y)
{
    if (!is_somewhere(x, y))
        return;
    box->x0 = fmin(box->x0, x);
    box->y0 = fmin(box->y0, y);
    box->x1 = fmax(box->x1, x);
    box->y1 = fmax(box->y1, y);
}

/* Column and row of a probe in that: those in which one of the two is odd. */
static void probe_at(int probe, int *col, int *row)
{
    *row = probe < 2 ? 0 : probe < 7 ? 1 : probe < 9 ? 2 : probe < 14 ? 3 : 4;
    *col = *row & 1 ? probe - (*row == 1 ? 2 : 9)
                    : 2 * (probe - (*row == 0   ? 0
                                    : *row == 2 ? 7
                                                : 14)) +
                          1;
}

static void join(const struct square *s, const double *x, const double *y,
                 struct pb_warp_lattice *out)
{
    for (int i = 0; i < PB_WARP_KNOWN; i++) {
        out->x[i / 3 * 2][i % 3 * 2] = s->known.x[i];
        out->y[i / 3 * 2][i % 3 * 2] = s->known.y[i];
    }
    for (int i = 0; i < PROBES; i++) {
        int col, row;

        probe_at(i, &col, &row);
        out->x[row][col] = x[i];
        out->y[row][col] = y[i];
    }
}

/* What the points of a square say. */
struct seen {
    int places;      /* points that are somewhere */
    double error_px; /* of the interpolation; infinite where a point is nowhere */
    struct pb_warp_box box;
};

static double off(double one, double other)
{
    return isfinite(one - other) ? fabs(one - other) : INFINITY;
}

static struct seen look(const struct square *s, const struct pb_warp_lattice *all)
{
    struct seen seen = {0, 0.0, no_box()};

    for (int i = 0; i < 25; i++) {
        const int col = i % 5, row = i / 5;
        struct pb_warp_at at;

        pb_warp_leaf_at(&s->known, col / 4.0, row / 4.0, &at);
        seen.places += is_somewhere(all->x[row][col], all->y[row][col]);
        box_add(&seen.box, all->x[row][col], all->y[row][col]);
        seen.error_px =
            fmax(seen.error_px, fmax(off(at.x, all->x[row][col]), off(at.y, all->y[row][col])));
    }
    return seen;
}

/* The most that a coordinate changes along a line of 5 points, from one to the next, but for its
 * largest change: that may be a jump. */
static double change_along(const double *v, size_t stride)
{
    double most = 0, second = 0;
    int n = 0;

    for (size_t i = 0; i < 4; i++) {
        const double change = off(v[(i + 1) * stride], v[i * stride]);

        if (isfinite(change)) {
            second = fmax(second, fmin(most, change));
            most = fmax(most, change);
            n++;
        }
    }
    return n > 1 ? second : most;
}

/* Whether every point lies so far from the old grid that nothing between it and the next ones comes
 * near, on either side of a jump or an edge. */
static bool is_far(const struct maker *m, const struct pb_warp_lattice *all)
{
    double change = 0;

    for (size_t i = 0; i < 5; i++) {
        change = fmax(change, fmax(change_along(all->x[i], 1), change_along(all->y[i], 1)));
        change = fmax(change, fmax(change_along(&all->x[0][i], 5), change_along(&all->y[0][i], 5)));
    }
    const double more = FAR * change + KERNEL_PX + m->beyond_px;
    for (int i = 0; i < 25; i++) {
        const double x = all->x[i / 5][i % 5], y = all->y[i / 5][i % 5];

        if (is_somewhere(x, y) && x >= -more && y >= -more && x <= m->warp->source_w + more &&
            y <= m->warp->source_h + more)
            return false;
    }
    return true;
}

/* Whether no pixel of the square needs one of the old grid. */
static bool is_void(const struct maker *m, const struct seen *seen,
                    const struct pb_warp_lattice *all)
{
    const struct pb_warp *const w = m->warp;

    if (seen->places == 0)
        return m->size <= fmax(EMPTY_SIDE, w->side / EMPTY_PART);
    /* As far as the square is wide: what lies between its points lies nearer. */
    const double more = fmax(seen->box.x1 - seen->box.x0, seen->box.y1 - seen->box.y0) +
                        2 * seen->error_px + KERNEL_PX + m->beyond_px;
    if (seen->places == PB_WARP_KNOWN + PROBES &&
        (seen->box.x1 + more < 0 || seen->box.y1 + more < 0 || seen->box.x0 - more > w->source_w ||
         seen->box.y0 - more > w->source_h))
        return true;
    return is_far(m, all);
}

static int add_leaf(struct maker *m, const struct square *s)
{
    struct pb_warp *const w = m->warp;

    if (m->size < 1.0 && !is_somewhere(s->known.x[0], s->known.y[0])) {
        w->tree[s->slot] = PB_WARP_VOID;
        return 0;
    }
    void *leaves = w->leaf;
    const int rc = grow(&leaves, &m->leaf_room, w->n_leaf, sizeof *w->leaf);

    w->leaf = leaves;
    if (rc < 0)
        return rc;
    w->leaf[w->n_leaf] = s->known;
    w->tree[s->slot] = (uint32_t)w->n_leaf++;
    return 0;
}

static int add_quarter(struct maker *m, const struct square *s, int quarter,
                       const struct pb_warp_lattice *all)
{
    const int right = quarter & 1, low = quarter >> 1;
    void *squares = m->next.at;
    const int rc = grow(&squares, &m->next.room, m->next.n, sizeof *m->next.at);

    m->next.at = squares;
    if (rc < 0)
        return rc;
    struct square *const q = &m->next.at[m->next.n++];
    *q = (struct square){.slot = m->warp->n_tree + (size_t)quarter,
                         .x = s->x + right * m->size / 2,
                         .y = s->y + low * m->size / 2};
    for (int i = 0; i < PB_WARP_KNOWN; i++) {
        q->known.x[i] = all->x[2 * low + i / 3][2 * right + i % 3];
        q->known.y[i] = all->y[2 * low + i / 3][2 * right + i % 3];
    }
    return 0;
}

/* Enters the square, a pixel, among those that are torn. */
static int add_torn(struct maker *m, const struct square *s)
{
    void *torn = m->torn;
    const int rc = grow(&torn, &m->torn_room, m->n_torn, sizeof *m->torn);

    m->torn = torn;
    if (rc < 0)
        return rc;
    m->torn[m->n_torn++] = (struct pb_warp_torn){s->x, s->y, m->warp->n_tree + QUARTERS};
    return 0;
}

/* Cuts the square into four, for the next level. */
static int cut(struct maker *m, const struct square *s, const struct pb_warp_lattice *all)
{
    struct pb_warp *const w = m->warp;
    const bool is_torn = m->has_areas && m->size == 1.0 && pb_warp_lattice_is_torn(all);
    const int entries = is_torn ? QUARTERS + 2 : QUARTERS;
    int rc = is_torn ? add_torn(m, s) : 0;

    w->tree[s->slot] = PB_WARP_BRANCH | (is_torn ? PB_WARP_TORN : 0) | (uint32_t)w->n_tree;
    for (int quarter = 0; quarter < QUARTERS && rc == 0; quarter++)
        rc = add_quarter(m, s, quarter, all);
    for (int entry = 0; entry < entries && rc == 0; entry++) {
        void *tree = w->tree;

        rc = grow(&tree, &m->tree_room, w->n_tree, sizeof *w->tree);
        w->tree = tree;
        if (rc == 0)
            w->tree[w->n_tree++] = PB_WARP_VOID;
    }
    return rc;
}

static int decide(struct maker *m, const struct square *s, const double *x, const double *y)
{
    struct pb_warp_lattice all;

    /* A square that begins at the edge has the corners of the last pixels. */
    if (s->x > m->warp->w || s->y > m->warp->h) {
        m->warp->tree[s->slot] = PB_WARP_VOID;
        return 0;
    }
    if (m->size < 1.0)
        return add_leaf(m, s);
    join(s, x, y, &all);
    const struct seen seen = look(s, &all);
    if (is_void(m, &seen, &all)) {
        m->warp->tree[s->slot] = PB_WARP_VOID;
        return 0;
    }
    if (seen.error_px <= m->error_px) {
        m->warp->error_px = fmax(m->warp->error_px, seen.error_px);
        return add_leaf(m, s);
    }
    return cut(m, s, &all);
}

static size_t used_bytes(const struct maker *m)
{
    return m->warp->n_leaf * sizeof *m->warp->leaf + m->warp->n_tree * sizeof *m->warp->tree +
           m->next.n * sizeof *m->next.at + m->n_torn * sizeof *m->torn;
}

/* All squares of this level; those that are cut go to the next one. */
static int make_level(struct maker *m)
{
    double x[BATCH * PROBES], y[BATCH * PROBES];
    int rc = 0;

    m->next.n = 0;
    for (size_t first = 0; first < m->now.n && rc == 0; first += BATCH) {
        const size_t n = m->now.n - first < BATCH ? m->now.n - first : BATCH;

        for (size_t i = 0; i < n * PROBES; i++) {
            int col, row;

            probe_at((int)(i % PROBES), &col, &row);
            x[i] = m->now.at[first + i / PROBES].x + col * m->size / 4;
            y[i] = m->now.at[first + i / PROBES].y + row * m->size / 4;
        }
        if (m->size >= 1.0) {
            m->points(m->of, n * PROBES, x, y);
            m->asked += n * PROBES;
        }
        for (size_t i = 0; i < n && rc == 0; i++)
            rc = decide(m, &m->now.at[first + i], x + i * PROBES, y + i * PROBES);
        if (rc == 0 && (used_bytes(m) > PB_WARP_TREE_BYTES || m->asked > POINTS_MOST))
            rc = -E2BIG;
    }
    const struct squares done = m->now;
    m->now = m->next;
    m->next = done;
    m->size /= 2;
    return rc;
}

/* The squares that the tree begins with, from points that lie half their side apart. */
static int begin(struct maker *m)
{
    struct pb_warp *const w = m->warp;
    const size_t cols = (size_t)w->cols, n = cols * (size_t)w->rows;
    const size_t across = 2 * cols + 1, points = across * (2 * (size_t)w->rows + 1);
    double *const x = malloc(points * 2 * sizeof *x), *const y = x != NULL ? x + points : NULL;

    m->now.at = x != NULL ? calloc(n, sizeof *m->now.at) : NULL;
    if (m->now.at == NULL) {
        free(x);
        return -ENOMEM;
    }
    m->now.n = m->now.room = n;
    for (size_t i = 0; i < points; i++) {
        const size_t row = i / across;

        x[i] = (double)(i % across) * (w->side / 2.0);
        y[i] = (double)row * (w->side / 2.0);
    }
    m->points(m->of, points, x, y);
    for (size_t i = 0; i < n; i++) {
        struct square *const s = &m->now.at[i];
        const size_t col = i % cols, row = i / cols;

        *s = (struct square){
            .slot = i, .x = (double)(col * (size_t)w->side), .y = (double)(row * (size_t)w->side)};
        for (size_t k = 0; k < PB_WARP_KNOWN; k++) {
            const size_t at = (2 * row + k / 3) * across + 2 * col + k % 3;

            s->known.x[k] = x[at];
            s->known.y[k] = y[at];
        }
        w->tree[i] = PB_WARP_VOID;
    }
    free(x);
    return 0;
}

static int make_tree(struct pb_warp *warp, pb_warp_points *points, void *of,
                     const struct pb_warp_want *want, double error_px)
{
    const size_t n = (size_t)warp->cols * (size_t)warp->rows;
    struct maker m = {.warp = warp,
                      .points = points,
                      .of = of,
                      .error_px = error_px,
                      .beyond_px = want->beyond_px,
                      .has_areas = want->has_areas,
                      .tree_room = n,
                      .leaf_room = 0,
                      .size = warp->side};

    warp->error_px = 0;
    warp->n_torn = 0;
    warp->n_tree = n;
    warp->n_leaf = 0;
    free(warp->leaf);
    warp->leaf = NULL;
    void *const tree = realloc(warp->tree, n * sizeof *warp->tree);
    if (tree == NULL)
        return -ENOMEM;
    warp->tree = tree;
    int rc = begin(&m);
    while (rc == 0 && m.now.n > 0)
        rc = make_level(&m);
    if (rc == 0 && m.n_torn > 0)
        rc = pb_warp_make_pieces(warp, points, of, m.torn, m.n_torn);
    free(m.now.at);
    free(m.next.at);
    free(m.torn);
    return rc;
}

void pb_warp_lay(struct pb_warp *warp)
{
    warp->side = SIDE_LEAST;
    while ((warp->w > warp->h ? warp->w : warp->h) / warp->side > CELLS_MOST)
        warp->side *= 2;
    warp->cols = warp->w / warp->side + (warp->w % warp->side != 0);
    warp->rows = warp->h / warp->side + (warp->h % warp->side != 0);
}

int pb_warp_fill(struct pb_warp *warp, pb_warp_points *points, void *of,
                 const struct pb_warp_want *want)
{
    int rc = -E2BIG;

    pb_warp_lay(warp);
    for (double error = fmax(want->error_px, PB_WARP_ERROR_PX);
         rc == -E2BIG && error <= PB_WARP_ERROR_MOST; error *= 8)
        rc = make_tree(warp, points, of, want, error);
    return rc;
}
