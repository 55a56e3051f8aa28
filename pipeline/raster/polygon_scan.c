/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rows are divided into bands of BAND_ROWS. Each band has the edges that reach into it, in groups:
 * one for each polygon, in their order. A tile goes through the bands under it, and through each
 * group that is not beside it: the crossings of all rows are counted, put in their row's place,
 * sorted, and the pixels between two of them filled. */
#include "pipeline/raster/polygon_scan.h"
#include "pipeline/raster/polygons.h"

#include <stdlib.h>
#include <string.h>

#define BAND_ROWS 64

/* From the upper to the lower end. Of a horizontal one x0 is the left end. */
struct edge {
    double x0, y0, x1, y1;
    bool leftward; /* as the ring goes: a horizontal edge is then a lower one */
};

struct group {
    uint32_t polygon;
    double left, right; /* of the polygon, not of its edges in this band */
    size_t first, n;    /* edges */
};

struct pb_polygon_scan {
    int32_t w, h;
    enum pb_scan_rule rule;
    size_t n_bands;
    size_t *band; /* n_bands + 1: the first group of each */
    struct group *group;
    size_t n_groups;
    struct edge *edge;
    size_t n_edges;
    size_t most; /* crossings of a group and the rows' centres */
};

/* The rows whose pixels an edge may touch, clipped to the grid; false: none. */
static bool rows_of(const struct pb_polygon_scan *scan, const struct edge *e, int32_t *out_first,
                    int32_t *out_last)
{
    if (!(e->y1 >= 0) || !(e->y0 <= scan->h))
        return false;
    *out_first = (int32_t)fmin(fmax(floor(e->y0), 0), scan->h - 1);
    *out_last = (int32_t)fmin(fmax(floor(e->y1), 0), scan->h - 1);
    return true;
}

static struct edge edge_of(const double from[2], const double to[2])
{
    const bool swap = from[1] > to[1] || (from[1] == to[1] && from[0] > to[0]);
    const double *a = swap ? to : from, *b = swap ? from : to;
    return (struct edge){a[0], a[1], b[0], b[1], from[0] > to[0]};
}

/* Goes through the edges of a polygon's rings and the bands that each reaches into; with `cursor`
 * each is stored where that of its band is, otherwise n[band] counts them. */
static void spread(struct pb_polygon_scan *scan, const struct pb_polygons *polygons,
                   const struct pb_polygon *polygon, size_t *n, size_t *cursor)
{
    for (size_t r = 0; r < polygon->n_rings; r++) {
        const struct pb_ring *ring = &polygons->ring[polygon->first_ring + r];
        const double(*xy)[2] = (const double(*)[2])(polygons->xy + ring->first);
        for (size_t i = 0; i < ring->n; i++) {
            const struct edge e = edge_of(xy[i > 0 ? i - 1 : ring->n - 1], xy[i]);
            int32_t first, last;
            if (!rows_of(scan, &e, &first, &last))
                continue;
            for (int32_t b = first / BAND_ROWS; b <= last / BAND_ROWS; b++) {
                if (cursor != NULL)
                    scan->edge[cursor[b]++] = e;
                else
                    n[b]++;
            }
        }
    }
}

/* The bands that a polygon lies over, and its left and right; false: none. */
static bool bands_of(const struct pb_polygon_scan *scan, const struct pb_polygons *polygons,
                     const struct pb_polygon *polygon, struct group *out, size_t *out_first,
                     size_t *out_last)
{
    double top = INFINITY, bottom = -INFINITY;
    out->left = INFINITY;
    out->right = -INFINITY;
    for (size_t r = 0; r < polygon->n_rings; r++) {
        const struct pb_ring *ring = &polygons->ring[polygon->first_ring + r];
        for (size_t i = ring->first; i < ring->first + ring->n; i++) {
            const double *v = polygons->xy[i];
            out->left = fmin(out->left, v[0]);
            out->right = fmax(out->right, v[0]);
            top = fmin(top, v[1]);
            bottom = fmax(bottom, v[1]);
        }
    }
    if (!(bottom >= 0) || !(top <= scan->h) || !(out->right >= 0) || !(out->left <= scan->w))
        return false;
    *out_first = (size_t)fmin(fmax(top, 0), scan->h - 1) / BAND_ROWS;
    *out_last = (size_t)fmin(fmax(bottom, 0), scan->h - 1) / BAND_ROWS;
    return true;
}

/* First round: counts groups and edges of each band. Second: the groups with their place. */
static void put_groups(struct pb_polygon_scan *scan, const struct pb_polygons *polygons,
                       size_t *count, size_t *next_group)
{
    for (size_t p = 0; p < polygons->n; p++) {
        struct group group = {.polygon = (uint32_t)p};
        size_t first, last;
        if (!bands_of(scan, polygons, &polygons->polygon[p], &group, &first, &last))
            continue;
        memset(count + first, 0, (last - first + 1) * sizeof *count);
        spread(scan, polygons, &polygons->polygon[p], count, NULL);
        for (size_t b = first; b <= last; b++) {
            if (count[b] == 0)
                continue;
            group.n = count[b];
            if (scan->group != NULL)
                scan->group[next_group[b]] = group;
            next_group[b]++;
            scan->n_edges += scan->group == NULL ? count[b] : 0;
        }
    }
}

/* The edges of each group, which stand in the order of the groups. */
static void put_edges(struct pb_polygon_scan *scan, const struct pb_polygons *polygons,
                      size_t *cursor, size_t *next_group)
{
    size_t at = 0;
    for (size_t g = 0; g < scan->n_groups; g++) {
        scan->group[g].first = at;
        at += scan->group[g].n;
    }
    memcpy(next_group, scan->band, scan->n_bands * sizeof *next_group);
    for (size_t p = 0; p < polygons->n; p++) {
        struct group own;
        size_t first, last;
        if (!bands_of(scan, polygons, &polygons->polygon[p], &own, &first, &last))
            continue;
        for (size_t b = first; b <= last; b++) {
            const size_t g = next_group[b];
            const bool is = g < scan->band[b + 1] && scan->group[g].polygon == p;
            cursor[b] = is ? scan->group[g].first : 0;
            next_group[b] += is;
        }
        spread(scan, polygons, &polygons->polygon[p], NULL, cursor);
    }
}

/* A tile's rows inside one band, and where its zones go. */
struct target {
    int32_t top, bottom; /* rows of the grid, bottom excluded */
    int32_t left, right; /* columns, right excluded */
    uint32_t *zones;     /* of the pixel left, top */
    size_t stride;
};

/* The rows of the target whose centres the edge crosses. */
static bool crossed(const struct edge *e, const struct target *to, int32_t *out_first,
                    int32_t *out_end)
{
    const double first = fmax(ceil(e->y0 - 0.5), to->top),
                 end = fmin(ceil(e->y1 - 0.5), to->bottom);
    *out_first = first < end ? (int32_t)first : 0;
    *out_end = first < end ? (int32_t)end : 0;
    return first < end;
}

static void find_most(struct pb_polygon_scan *scan)
{
    for (size_t b = 0; b < scan->n_bands; b++) {
        const struct target rows = {.top = (int32_t)(b * BAND_ROWS),
                                    .bottom = (int32_t)((b + 1) * BAND_ROWS)};
        for (size_t g = scan->band[b]; g < scan->band[b + 1]; g++) {
            const struct group *const group = &scan->group[g];
            size_t n = 0;
            for (size_t i = group->first; i < group->first + group->n; i++) {
                int32_t first, end;
                if (crossed(&scan->edge[i], &rows, &first, &end))
                    n += (size_t)(end - first);
            }
            scan->most = n > scan->most ? n : scan->most;
        }
    }
}

static bool fill_scan(struct pb_polygon_scan *scan, const struct pb_polygons *polygons,
                      size_t *count, size_t *next)
{
    put_groups(scan, polygons, count, next);
    for (size_t b = 0; b < scan->n_bands; b++)
        scan->band[b + 1] = scan->band[b] + next[b];
    scan->n_groups = scan->band[scan->n_bands];
    scan->group = calloc(scan->n_groups + 1, sizeof *scan->group);
    scan->edge = calloc(scan->n_edges + 1, sizeof *scan->edge);
    if (scan->group == NULL || scan->edge == NULL)
        return false;
    memcpy(next, scan->band, scan->n_bands * sizeof *next);
    put_groups(scan, polygons, count, next);
    put_edges(scan, polygons, count, next);
    find_most(scan);
    return true;
}

struct pb_polygon_scan *pb_polygon_scan_create(const struct pb_polygons *polygons, int32_t w,
                                               int32_t h, enum pb_scan_rule rule)
{
    struct pb_polygon_scan *scan = calloc(1, sizeof *scan);
    if (scan == NULL)
        return NULL;
    scan->w = w;
    scan->h = h;
    scan->rule = rule;
    scan->n_bands = ((size_t)h + BAND_ROWS - 1) / BAND_ROWS;
    scan->band = calloc(scan->n_bands + 1, sizeof *scan->band);
    size_t *count = calloc(scan->n_bands, sizeof *count);
    size_t *next = calloc(scan->n_bands, sizeof *next);
    const bool fine = scan->band != NULL && count != NULL && next != NULL &&
                      fill_scan(scan, polygons, count, next);
    free(count);
    free(next);
    if (fine)
        return scan;
    pb_polygon_scan_destroy(scan);
    return NULL;
}

void pb_polygon_scan_destroy(struct pb_polygon_scan *scan)
{
    if (scan == NULL)
        return;
    free(scan->band);
    free(scan->group);
    free(scan->edge);
    free(scan);
}

size_t pb_polygon_scan_bytes(const struct pb_polygon_scan *scan)
{
    return sizeof *scan + (scan->n_bands + 1) * sizeof *scan->band +
           scan->n_groups * sizeof *scan->group + scan->n_edges * sizeof *scan->edge;
}

/* Of one band: where each row's crossings begin, then all of them. */
struct scratch {
    size_t at[BAND_ROWS + 1];
    int32_t x[]; /* a column: the first whose centre is not left of the crossing */
};

size_t pb_polygon_scan_scratch_bytes(const struct pb_polygon_scan *scan)
{
    return sizeof(struct scratch) + scan->most * sizeof(int32_t);
}

bool pb_polygon_scan_meets(const struct pb_polygon_scan *scan, const struct pb_rect *rect)
{
    const size_t first = (size_t)rect->y / BAND_ROWS;
    const size_t last = (size_t)(rect->y + rect->h - 1) / BAND_ROWS;
    for (size_t g = scan->band[first]; g < scan->band[last + 1]; g++)
        if (scan->group[g].right >= rect->x && scan->group[g].left <= (double)rect->x + rect->w)
            return true;
    return false;
}

static void fill(const struct target *to, int32_t row, double x0, double x1, uint32_t zone)
{
    const int32_t from = (int32_t)fmin(fmax(x0, to->left), to->right);
    const int32_t end = (int32_t)fmin(fmax(x1, to->left), to->right);
    uint32_t *const line = to->zones + (size_t)(row - to->top) * to->stride;
    for (int32_t x = from; x < end; x++)
        line[x - to->left] = zone;
}

static int by_column(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void sort_columns(int32_t *x, size_t n)
{
    if (n > 16) {
        qsort(x, n, sizeof *x, by_column);
        return;
    }
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && x[k - 1] > x[k]; k--) {
            const int32_t swap = x[k];
            x[k] = x[k - 1];
            x[k - 1] = swap;
        }
}

static void put_crossings(const struct edge *edge, size_t n, const struct target *to,
                          struct scratch *scratch)
{
    size_t *const at = scratch->at;
    const int32_t rows = to->bottom - to->top;
    int32_t first, end;
    memset(at, 0, sizeof scratch->at);
    for (size_t i = 0; i < n; i++)
        if (crossed(&edge[i], to, &first, &end))
            for (int32_t row = first; row < end; row++)
                at[row - to->top + 1]++;
    for (int32_t i = 0; i < rows; i++)
        at[i + 1] += at[i];
    for (size_t i = 0; i < n; i++) {
        const struct edge *e = &edge[i];
        if (!crossed(e, to, &first, &end))
            continue;
        for (int32_t row = first; row < end; row++) {
            const double x = (row + 0.5 - e->y0) * (e->x1 - e->x0) / (e->y1 - e->y0) + e->x0;
            scratch->x[at[row - to->top]++] =
                (int32_t)fmin(fmax(floor(x + 0.5), to->left), to->right);
        }
    }
    memmove(at + 1, at, (size_t)rows * sizeof *at);
    at[0] = 0;
}

/* Pixels of an edge along the centres of a row, which is the lower one of its polygon. */
static void fill_level(const struct edge *e, const struct target *to, uint32_t zone)
{
    const double row = e->y0 - 0.5;
    if (e->y0 == e->y1 && e->leftward && row == floor(row) && row >= to->top && row < to->bottom)
        fill(to, (int32_t)row, floor(e->x0 + 0.5), floor(e->x1 + 0.5), zone);
}

/* Pixels that an edge passes through. */
static void fill_touched(const struct edge *e, const struct target *to, uint32_t zone)
{
    const double slope = e->y1 > e->y0 ? (e->x1 - e->x0) / (e->y1 - e->y0) : 0;
    const int32_t first = (int32_t)fmax(floor(e->y0), to->top);
    const int32_t last = (int32_t)fmin(floor(e->y1), to->bottom - 1);
    for (int32_t row = first; row <= last; row++) {
        const double a = e->y0 > row ? e->x0 : e->x0 + (row - e->y0) * slope;
        const double b = e->y1 < row + 1 ? e->x1 : e->x0 + (row + 1 - e->y0) * slope;
        fill(to, row, floor(fmin(a, b)), floor(fmax(a, b)) + 1, zone);
    }
}

static void fill_group(const struct pb_polygon_scan *scan, const struct group *group,
                       const struct target *to, struct scratch *scratch)
{
    const struct edge *const edge = scan->edge + group->first;
    const uint32_t zone = group->polygon + 1;
    put_crossings(edge, group->n, to, scratch);
    for (int32_t row = to->top; row < to->bottom; row++) {
        const size_t first = scratch->at[row - to->top];
        const size_t n = scratch->at[row - to->top + 1] - first;
        int32_t *const x = scratch->x + first;
        sort_columns(x, n);
        for (size_t i = 0; i + 1 < n; i += 2)
            fill(to, row, x[i], x[i + 1], zone);
    }
    for (size_t i = 0; i < group->n; i++) {
        fill_level(&edge[i], to, zone);
        if (scan->rule == PB_SCAN_TOUCHED)
            fill_touched(&edge[i], to, zone);
    }
}

void pb_polygon_scan_zones(const struct pb_polygon_scan *scan, const struct pb_rect *rect,
                           void *scratch, uint32_t *out_zones, size_t stride)
{
    const int32_t bottom = rect->y + rect->h;
    for (int32_t row = 0; row < rect->h; row++)
        memset(out_zones + (size_t)row * stride, 0, (size_t)rect->w * sizeof *out_zones);
    for (int32_t y = rect->y; y < bottom;) {
        const size_t band = (size_t)y / BAND_ROWS;
        const int64_t end = ((int64_t)band + 1) * BAND_ROWS;
        const struct target to = {.top = y,
                                  .bottom = end < bottom ? (int32_t)end : bottom,
                                  .left = rect->x,
                                  .right = rect->x + rect->w,
                                  .zones = out_zones + (size_t)(y - rect->y) * stride,
                                  .stride = stride};
        for (size_t g = scan->band[band]; g < scan->band[band + 1]; g++)
            if (scan->group[g].right >= to.left && scan->group[g].left <= to.right)
                fill_group(scan, &scan->group[g], &to, scratch);
        y = to.bottom;
    }
}

/* The columns of the target that a polygon can have. */
static struct target narrow(const struct target *to, const struct group *group)
{
    struct target out = *to;
    out.left = (int32_t)fmin(fmax(floor(group->left) - 1, to->left), to->right);
    out.right = (int32_t)fmin(fmax(ceil(group->right) + 1, out.left), to->right);
    out.zones += out.left - to->left;
    return out;
}

/* The runs of one polygon; leaves the target all zero. */
static bool give_runs(const struct target *to, uint32_t polygon, pb_polygon_run *run, void *user)
{
    for (int32_t row = to->top; row < to->bottom; row++) {
        uint32_t *const line = to->zones + (size_t)(row - to->top) * to->stride;
        const int32_t n = to->right - to->left;
        for (int32_t x = 0, end; x < n; x = end) {
            for (end = x + 1; end < n && (line[end] != 0) == (line[x] != 0);)
                end++;
            if (line[x] != 0 && !run(user, polygon, to->left + x, row, end - x))
                return false;
        }
        memset(line, 0, (size_t)n * sizeof *line);
    }
    return true;
}

bool pb_polygon_scan_each(const struct pb_polygon_scan *scan, const struct pb_rect *rect,
                          void *scratch, uint32_t *zones, pb_polygon_run *run, void *user)
{
    const int32_t bottom = rect->y + rect->h;
    memset(zones, 0, (size_t)rect->w * (size_t)rect->h * sizeof *zones);
    for (int32_t y = rect->y; y < bottom;) {
        const size_t band = (size_t)y / BAND_ROWS;
        const int64_t end = ((int64_t)band + 1) * BAND_ROWS;
        const struct target all = {.top = y,
                                   .bottom = end < bottom ? (int32_t)end : bottom,
                                   .left = rect->x,
                                   .right = rect->x + rect->w,
                                   .zones = zones + (size_t)(y - rect->y) * (size_t)rect->w,
                                   .stride = (size_t)rect->w};
        for (size_t g = scan->band[band]; g < scan->band[band + 1]; g++) {
            const struct group *const group = &scan->group[g];
            if (group->right < all.left || group->left > all.right)
                continue;
            const struct target to = narrow(&all, group);
            fill_group(scan, group, &to, scratch);
            if (!give_runs(&to, group->polygon, run, user))
                return false;
        }
        y = all.bottom;
    }
    return true;
}
