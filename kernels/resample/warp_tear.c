/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Footprints of pixels between whose corners the positions jump: the antimeridian, a pole, an edge
 * of an interrupted projection. Such a pixel becomes cells that each lie on one side. Where a jump
 * crosses two edges of a cell, both crossings are found by bisection, and the cell becomes two
 * polygons, one on each side; any other cell is cut into four, down to a millionth of the pixel.
 * What is left then has no part in the footprint. */
#include "kernels/resample/warp_tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH      20 /* times that a pixel is halved */
#define CELLS_MOST 512
#define BATCH      64   /* cells */
#define HALVINGS   40   /* of a quarter of a cell's edge, to the jump in it */
#define JUMP       4.0  /* times the changes around it */
#define JUMP_PX    1e-3 /* of the old grid: less is no jump */
#define INSIDE     1e-9 /* parts of a cell's half that its lattice ends before its edges */
#define SAME       1e-6 /* difference of two jumps of a period, as a part of them */

enum { SIDES = 4, LATTICE = 25 };

/* A square of a torn pixel, on the new grid. */
struct cell {
    uint32_t pixel; /* of the torn ones */
    double x, y, size;
};

struct point {
    double x, y;
};

/* Between two points of the new grid, of which one lies on each side of a jump. */
struct crossing {
    struct point low, high;       /* on the new grid; the jump is between them */
    struct point at_low, at_high; /* their positions on the old one */
    double change;                /* from one to the other, at first */
};

/* A cell that a jump crosses from edge[0] to edge[1]. */
struct cut {
    struct cell cell;
    struct point corner[SIDES];
    int edge[2];
    struct crossing crossing[2];
};

struct piece {
    uint32_t pixel, n;
    struct point corner[PB_WARP_CORNERS];
};

/* A list that grows. */
struct list {
    void *at;
    size_t n, room;
};

struct tearing {
    pb_warp_points *points;
    void *of;
    uint32_t *n_cells; /* of each pixel */
    struct list now, next, cuts, pieces;
};

static void *list_add(struct list *list, size_t bytes)
{
    if (list->n == list->room) {
        const size_t more = list->room ? 2 * list->room : 256;
        void *const larger = realloc(list->at, more * bytes);

        if (larger == NULL)
            return NULL;
        list->at = larger;
        list->room = more;
    }
    return (char *)list->at + bytes * list->n++;
}

/* --- jumps ------------------------------------------------------------------------------------ */

static double distance(struct point a, struct point b)
{
    return hypot(a.x - b.x, a.y - b.y);
}

static struct point lattice_at(const struct pb_warp_lattice *all, int row, int col)
{
    return (struct point){all->x[row][col], all->y[row][col]};
}

/* The four changes along five points, and how large one is that is no jump. */
static double changes_of(const struct point p[5], double change[4])
{
    double least = INFINITY, second = INFINITY;

    for (int i = 0; i < 4; i++) {
        change[i] = distance(p[i], p[i + 1]);
        second = fmin(second, fmax(least, change[i]));
        least = fmin(least, change[i]);
    }
    return JUMP * second + JUMP_PX;
}

/* Returns how many jumps there are along a line of five points; *out: the step of the last one. */
static int count_jumps(const struct point p[5], int *out)
{
    double change[4];
    const double most = changes_of(p, change);
    int n = 0;

    for (int i = 0; i < 4; i++)
        if (change[i] > most) {
            *out = i;
            n++;
        }
    return n;
}

static void line_of(const struct pb_warp_lattice *all, int line, bool is_row, struct point p[5])
{
    for (int i = 0; i < 5; i++)
        p[i] = is_row ? lattice_at(all, line, i) : lattice_at(all, i, line);
}

bool pb_warp_lattice_is_torn(const struct pb_warp_lattice *all)
{
    struct point p[5];
    int step, n = 0;

    for (int i = 0; i < 10 && n == 0; i++) {
        line_of(all, i % 5, i < 5, p);
        n = count_jumps(p, &step);
    }
    return n > 0;
}

/* The places of a cell's corners in its lattice, around it. */
static const int corner_row[SIDES] = {0, 0, 4, 4}, corner_col[SIDES] = {0, 4, 4, 0};

/* From corner `edge` to the next one. */
static void edge_of(const struct pb_warp_lattice *all, int edge, struct point p[5])
{
    const int next = (edge + 1) % SIDES;

    for (int i = 0; i < 5; i++)
        p[i] = lattice_at(all, corner_row[edge] + (corner_row[next] - corner_row[edge]) / 4 * i,
                          corner_col[edge] + (corner_col[next] - corner_col[edge]) / 4 * i);
}

/* A place of a cell's lattice along an axis. All of them lie inside of the cell: those of an edge
 * that is a jump itself lie on one side of it. */
static double place_in(double from, double size, double part)
{
    return from + size * (0.5 + (part - 0.5) * (1 - INSIDE));
}

static struct point on_edge(const struct cell *cell, int edge, double part)
{
    const int next = (edge + 1) % SIDES;
    const double row = corner_row[edge] + (corner_row[next] - corner_row[edge]) * part;
    const double col = corner_col[edge] + (corner_col[next] - corner_col[edge]) * part;

    return (struct point){place_in(cell->x, cell->size, col / 4),
                          place_in(cell->y, cell->size, row / 4)};
}

/* --- cells ------------------------------------------------------------------------------------ */

static int add_quarters(struct tearing *t, const struct cell *cell)
{
    for (int i = 0; i < 4 && t->n_cells[cell->pixel] < CELLS_MOST; i++) {
        struct cell *const quarter = list_add(&t->next, sizeof *quarter);

        if (quarter == NULL)
            return -ENOMEM;
        *quarter = (struct cell){cell->pixel, cell->x + (i & 1 ? cell->size / 2 : 0),
                                 cell->y + (i >> 1 ? cell->size / 2 : 0), cell->size / 2};
        t->n_cells[cell->pixel]++;
    }
    return 0;
}

static int add_piece(struct tearing *t, uint32_t pixel, const struct point *corner, uint32_t n)
{
    struct piece *const piece = list_add(&t->pieces, sizeof *piece);

    if (piece == NULL)
        return -ENOMEM;
    *piece = (struct piece){.pixel = pixel, .n = n};
    for (uint32_t i = 0; i < PB_WARP_CORNERS; i++)
        piece->corner[i] = corner[i < n ? i : n - 1];
    return 0;
}

/* How many of the lattice's points have a position; *out_corners: of its corners. */
static int count_places(const struct pb_warp_lattice *all, int *out_corners)
{
    int n = 0;

    *out_corners = 0;
    for (int i = 0; i < LATTICE; i++) {
        const bool is_there = isfinite(all->x[i / 5][i % 5]) && isfinite(all->y[i / 5][i % 5]);

        n += is_there;
        *out_corners += is_there && i / 5 % 4 == 0 && i % 5 % 4 == 0;
    }
    return n;
}

/* Enters the cell among those that a jump crosses from one edge to another. */
static int add_cut(struct tearing *t, const struct cell *cell, const struct pb_warp_lattice *all,
                   const int edge[2], const int step[2])
{
    struct cut *const cut = list_add(&t->cuts, sizeof *cut);

    if (cut == NULL)
        return -ENOMEM;
    *cut = (struct cut){.cell = *cell, .edge = {edge[0], edge[1]}};
    for (int i = 0; i < SIDES; i++)
        cut->corner[i] = lattice_at(all, corner_row[i], corner_col[i]);
    for (int i = 0; i < 2; i++) {
        struct point p[5];

        edge_of(all, edge[i], p);
        cut->crossing[i] = (struct crossing){.low = on_edge(cell, edge[i], step[i] / 4.0),
                                             .high = on_edge(cell, edge[i], (step[i] + 1) / 4.0),
                                             .at_low = p[step[i]],
                                             .at_high = p[step[i] + 1],
                                             .change = distance(p[step[i]], p[step[i] + 1])};
    }
    return 0;
}

static int decide(struct tearing *t, const struct cell *cell, const struct pb_warp_lattice *all)
{
    int corners, edge[2] = {0, 0}, step[2] = {0, 0}, n = 0;
    bool is_one_each = true;

    if (count_places(all, &corners) == 0 || (cell->size == 1.0 && corners < SIDES))
        return 0;
    if (corners < SIDES)
        return add_quarters(t, cell);
    for (int i = 0; i < SIDES; i++) {
        struct point p[5];
        int at = 0;

        edge_of(all, i, p);
        const int jumps = count_jumps(p, &at);
        is_one_each = is_one_each && jumps <= 1;
        if (jumps > 0 && n < 2) {
            edge[n] = i;
            step[n] = at;
        }
        n += jumps > 0;
    }
    if (n == 2 && is_one_each)
        return add_cut(t, cell, all, edge, step);
    if (n > 0 || pb_warp_lattice_is_torn(all))
        return add_quarters(t, cell);
    const struct point corner[SIDES] = {lattice_at(all, 0, 0), lattice_at(all, 0, 4),
                                        lattice_at(all, 4, 4), lattice_at(all, 4, 0)};
    return add_piece(t, cell->pixel, corner, SIDES);
}

static int decide_all(struct tearing *t)
{
    double x[BATCH * LATTICE], y[BATCH * LATTICE];
    const struct cell *const cells = t->now.at;
    int rc = 0;

    for (size_t first = 0; first < t->now.n && rc == 0; first += BATCH) {
        const size_t n = t->now.n - first < BATCH ? t->now.n - first : BATCH;

        for (size_t i = 0; i < n * LATTICE; i++) {
            const struct cell *const cell = &cells[first + i / LATTICE];

            const size_t col = i % LATTICE % 5, row = i % LATTICE / 5;

            x[i] = place_in(cell->x, cell->size, (double)col / 4);
            y[i] = place_in(cell->y, cell->size, (double)row / 4);
        }
        t->points(t->of, n * LATTICE, x, y);
        for (size_t i = 0; i < n && rc == 0; i++) {
            struct pb_warp_lattice all;

            memcpy(all.x, x + i * LATTICE, sizeof all.x);
            memcpy(all.y, y + i * LATTICE, sizeof all.y);
            rc = decide(t, &cells[first + i], &all);
        }
    }
    return rc;
}

/* --- crossings -------------------------------------------------------------------------------- */

static void halve(struct crossing *c, struct point middle, struct point at)
{
    if (distance(at, c->at_low) <= distance(at, c->at_high)) {
        c->low = middle;
        c->at_low = at;
    } else { /* a place without a position, too */
        c->high = middle;
        c->at_high = at;
    }
}

/* Brings both ends of all crossings to the jump. */
static int find_crossings(struct tearing *t)
{
    struct cut *const cuts = t->cuts.at;
    const size_t n = 2 * t->cuts.n;
    double *const x = malloc((2 * n + 1) * sizeof *x), *const y = x != NULL ? x + n : NULL;

    if (x == NULL)
        return -ENOMEM;
    for (int k = 0; k < HALVINGS && n > 0; k++) {
        for (size_t i = 0; i < n; i++) {
            const struct crossing *const c = &cuts[i / 2].crossing[i % 2];

            x[i] = (c->low.x + c->high.x) / 2;
            y[i] = (c->low.y + c->high.y) / 2;
        }
        t->points(t->of, n, x, y);
        for (size_t i = 0; i < n; i++) {
            struct crossing *const c = &cuts[i / 2].crossing[i % 2];
            const struct point middle = {(c->low.x + c->high.x) / 2, (c->low.y + c->high.y) / 2};

            halve(c, middle, (struct point){x[i], y[i]});
        }
    }
    free(x);
    return 0;
}

static bool is_jump(const struct crossing *c)
{
    return distance(c->at_low, c->at_high) > c->change / 2;
}

/* Where the line from b to a crosses the line through two points of the jump, of which `near` is
 * the one on that edge of the cell. */
static struct point chord_crossing(struct point b, struct point a, struct point near,
                                   struct point other)
{
    const struct point along = {a.x - b.x, a.y - b.y}, jump = {other.x - near.x, other.y - near.y};
    const double across = along.x * jump.y - along.y * jump.x;
    const double part = ((near.x - b.x) * jump.y - (near.y - b.y) * jump.x) / across;
    const struct point at = {b.x + part * along.x, b.y + part * along.y};

    return isfinite(part) && part >= 0 && part <= 1 && distance(at, near) < distance(a, b) / 4
               ? at
               : near;
}

/* The two polygons of a cell. Side A has the corners behind edge[0] up to edge[1], side B the
 * others. Where both jumps are the same shift (the period of a world's longitudes), the edges are
 * those of the whole cell's polygon. */
static int split(struct tearing *t, const struct cut *cut)
{
    const struct crossing *const one = &cut->crossing[0], *const two = &cut->crossing[1];
    struct point a[PB_WARP_CORNERS], b[PB_WARP_CORNERS];
    struct point a_one = one->at_high, a_two = two->at_low, b_one = one->at_low,
                 b_two = two->at_high;
    const struct point shift = {a_one.x - b_one.x, a_one.y - b_one.y};
    const struct point other = {a_two.x - b_two.x, a_two.y - b_two.y};
    uint32_t n_a = 0, n_b = 0;

    if (distance(shift, other) < SAME * hypot(shift.x, shift.y) + JUMP_PX) {
        const struct point *const c = cut->corner;
        const struct point from = c[cut->edge[0]], to = c[(cut->edge[1] + 1) % SIDES];
        const struct point from_a = {from.x + shift.x, from.y + shift.y},
                           to_a = {to.x + shift.x, to.y + shift.y};
        const struct point first =
            chord_crossing(from_a, c[(cut->edge[0] + 1) % SIDES], a_one, a_two);

        a_two = chord_crossing(to_a, c[cut->edge[1]], a_two, a_one);
        a_one = first;
        b_one = (struct point){a_one.x - shift.x, a_one.y - shift.y};
        b_two = (struct point){a_two.x - shift.x, a_two.y - shift.y};
    }
    a[n_a++] = a_one;
    for (int i = cut->edge[0] + 1; i <= cut->edge[1]; i++)
        a[n_a++] = cut->corner[i];
    a[n_a++] = a_two;
    b[n_b++] = b_two;
    for (int i = cut->edge[1] + 1; i <= cut->edge[0] + SIDES; i++)
        b[n_b++] = cut->corner[i % SIDES];
    b[n_b++] = b_one;
    const int rc = add_piece(t, cut->cell.pixel, a, n_a);
    return rc ? rc : add_piece(t, cut->cell.pixel, b, n_b);
}

static int split_all(struct tearing *t)
{
    int rc = find_crossings(t);

    for (size_t i = 0; i < t->cuts.n && rc == 0; i++) {
        const struct cut *const cut = (const struct cut *)t->cuts.at + i;

        rc = is_jump(&cut->crossing[0]) && is_jump(&cut->crossing[1]) ? split(t, cut)
                                                                      : add_quarters(t, &cut->cell);
    }
    t->cuts.n = 0;
    return rc;
}

/* --- leaves ----------------------------------------------------------------------------------- */

/* Appends the pieces to the warp's leaves, those of a pixel side by side. */
static int store(struct pb_warp *warp, const struct pb_warp_torn *torn, size_t n_torn,
                 const struct list *pieces)
{
    const struct piece *const from = pieces->at;
    struct pb_warp_leaf *const leaf =
        realloc(warp->leaf, (warp->n_leaf + pieces->n + 1) * sizeof *leaf);
    size_t at = warp->n_leaf;

    if (leaf == NULL)
        return -ENOMEM;
    warp->leaf = leaf;
    for (size_t i = 0; i < n_torn; i++)
        warp->tree[torn[i].more + 1] = 0;
    for (size_t i = 0; i < pieces->n; i++)
        warp->tree[torn[from[i].pixel].more + 1]++;
    for (size_t i = 0; i < n_torn; i++) {
        warp->tree[torn[i].more] = (uint32_t)at;
        at += warp->tree[torn[i].more + 1];
        warp->tree[torn[i].more + 1] = 0;
    }
    for (size_t i = 0; i < pieces->n; i++) {
        uint32_t *const more = &warp->tree[torn[from[i].pixel].more];
        struct pb_warp_leaf *const to = &leaf[more[0] + more[1]++];

        for (int k = 0; k < PB_WARP_KNOWN; k++) {
            const struct point p = from[i].corner[k < PB_WARP_CORNERS ? k : PB_WARP_CORNERS - 1];

            to->x[k] = p.x;
            to->y[k] = p.y;
        }
    }
    warp->n_leaf += pieces->n;
    warp->n_torn = n_torn;
    return 0;
}

static int begin(struct tearing *t, const struct pb_warp_torn *torn, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct cell *const cell = list_add(&t->now, sizeof *cell);

        if (cell == NULL)
            return -ENOMEM;
        *cell = (struct cell){(uint32_t)i, torn[i].x, torn[i].y, 1.0};
    }
    return 0;
}

int pb_warp_make_pieces(struct pb_warp *warp, pb_warp_points *points, void *of,
                        const struct pb_warp_torn *torn, size_t n)
{
    struct tearing t = {.points = points, .of = of, .n_cells = calloc(n + 1, sizeof *t.n_cells)};
    int rc = t.n_cells != NULL ? begin(&t, torn, n) : -ENOMEM;

    for (int depth = 0; depth <= DEPTH && rc == 0 && t.now.n > 0; depth++) {
        rc = decide_all(&t);
        rc = rc ? rc : split_all(&t);
        const struct list done = t.now;
        t.now = t.next;
        t.next = done;
        t.next.n = 0;
    }
    rc = rc ? rc : store(warp, torn, n, &t.pieces);
    free(t.n_cells);
    free(t.now.at);
    free(t.next.at);
    free(t.cuts.at);
    free(t.pieces.at);
    return rc;
}
