/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A tile is processed band by band, and within a band by each part of a polygon whose columns
 * overlap it: the crossings of the rows are counted, sorted by row and column, and the pixels
 * between two crossings are filled. If the scratch cannot hold the crossings of all rows, fewer
 * rows are processed at a time. */
#include "pipeline/raster/polygon_scan_inside.h"

#include <stdlib.h>
#include <string.h>

/* Distance from a border of pixels that is explained by the rounding of a transformation. */
#define BORDER_PX 2e-7

/* Returns the next edge of the group from i on that may touch the rows top .. bottom, or the
 * group's end. */
static size_t next_edge(const struct pb_polygon_scan *scan, const struct group *group, size_t i,
                        int32_t top, int32_t bottom)
{
    const size_t end = group->first + group->n;
    while (i < end && scan->edge[i].y0 <= bottom) {
        if (scan->lowest[i / EDGE_BLOCK] < top)
            i = (i / EDGE_BLOCK + 1) * EDGE_BLOCK;
        else if (scan->edge[i].y1 < top)
            i++;
        else
            return i;
    }
    return end;
}

/* Crossings of one band: index of each row's first crossing, then all crossings. */
struct scratch {
    size_t at[BAND_ROWS + 1];
    int32_t x[]; /* column of a crossing: the first one whose centre is not left of it */
};

size_t pb_polygon_scan_scratch_bytes(const struct pb_polygon_scan *scan)
{
    return sizeof(struct scratch) + scan->most * sizeof(int32_t);
}

bool pb_polygon_scan_meets(const struct pb_polygon_scan *scan, const struct pb_rect *rect)
{
    const size_t first = (size_t)rect->y / BAND_ROWS;
    const size_t last = (size_t)(rect->y + rect->h - 1) / BAND_ROWS;
    for (size_t m = scan->band[first]; m < scan->band[last + 1]; m++) {
        const struct group *const group = &scan->group[scan->member[m]];
        if (group->right >= rect->x && group->left <= (double)rect->x + rect->w)
            return true;
    }
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

/* Counts the crossings of the target's row i in at[i + 1]. Returns their sum. */
static size_t count_crossings(const struct pb_polygon_scan *scan, const struct group *group,
                              const struct target *to, size_t at[BAND_ROWS + 1])
{
    const size_t last = group->first + group->n;
    size_t n = 0;
    int32_t first, end;
    memset(at, 0, (BAND_ROWS + 1) * sizeof *at);
    for (size_t i = next_edge(scan, group, group->first, to->top, to->bottom); i < last;
         i = next_edge(scan, group, i + 1, to->top, to->bottom)) {
        if (!crossed(&scan->edge[i], to, &first, &end))
            continue;
        n += (size_t)(end - first);
        for (int32_t row = first; row < end; row++)
            at[row - to->top + 1]++;
    }
    return n;
}

/* Stores the crossings by row after count_crossings; at becomes the index of each row's first
 * crossing. */
static void put_crossings(const struct pb_polygon_scan *scan, const struct group *group,
                          const struct target *to, struct scratch *scratch)
{
    size_t *const at = scratch->at;
    const size_t last = group->first + group->n;
    const int32_t rows = to->bottom - to->top;
    int32_t first, end;
    for (int32_t i = 0; i < rows; i++)
        at[i + 1] += at[i];
    for (size_t i = next_edge(scan, group, group->first, to->top, to->bottom); i < last;
         i = next_edge(scan, group, i + 1, to->top, to->bottom)) {
        const struct edge *e = &scan->edge[i];
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

/* Fills the pixels of a horizontal edge along the centres of a row if it is a lower edge of its
 * polygon. */
static void fill_level(const struct edge *e, const struct target *to, uint32_t zone)
{
    const double row = e->y0 - 0.5;
    if (e->y0 == e->y1 && e->x0 > e->x1 && row == floor(row) && row >= to->top && row < to->bottom)
        fill(to, (int32_t)row, floor(e->x1 + 0.5), floor(e->x0 + 0.5), zone);
}

/* Rounds a coordinate to a border of pixels if it differs by no more than the rounding error. */
static double to_border(double v)
{
    const double border = rint(v);
    return fabs(v - border) <= BORDER_PX ? border : v;
}

/* Fills the pixels whose interior an edge passes through: in each row those that its columns
 * overlap by more than a border. An edge along a border overlaps none. */
static void fill_touched(const struct edge *e, const struct target *to, uint32_t zone)
{
    const double slope = e->y1 > e->y0 ? (e->x1 - e->x0) / (e->y1 - e->y0) : 0;
    const double top = to_border(e->y0), bottom = to_border(e->y1);
    const int32_t first = (int32_t)fmax(floor(top), to->top);
    const int32_t end = (int32_t)fmin(ceil(bottom), to->bottom);
    for (int32_t row = first; row < end; row++) {
        const double a = to_border(e->y0 > row ? e->x0 : e->x0 + (row - e->y0) * slope);
        const double b = to_border(e->y1 < row + 1 ? e->x1 : e->x0 + (row + 1 - e->y0) * slope);
        fill(to, row, floor(fmin(a, b)), ceil(fmax(a, b)), zone);
    }
}

/* Fills the pixels between crossings: of all rows at once or, if there are too many crossings,
 * row by row. */
static void fill_inside(const struct pb_polygon_scan *scan, const struct group *group,
                        const struct target *to, struct scratch *scratch)
{
    if (count_crossings(scan, group, to, scratch->at) > scan->most) {
        struct target part = *to;
        part.bottom = to->top + (to->bottom - to->top) / 2;
        fill_inside(scan, group, &part, scratch);
        part.zones += (size_t)(part.bottom - part.top) * to->stride;
        part.top = part.bottom;
        part.bottom = to->bottom;
        fill_inside(scan, group, &part, scratch);
        return;
    }
    put_crossings(scan, group, to, scratch);
    for (int32_t row = to->top; row < to->bottom; row++) {
        const size_t first = scratch->at[row - to->top];
        const size_t n = scratch->at[row - to->top + 1] - first;
        int32_t *const x = scratch->x + first;
        sort_columns(x, n);
        for (size_t i = 0; i + 1 < n; i += 2)
            fill(to, row, x[i], x[i + 1], group->polygon + 1);
    }
}

static void fill_group(const struct pb_polygon_scan *scan, const struct group *group,
                       const struct target *to, struct scratch *scratch)
{
    const size_t last = group->first + group->n;
    fill_inside(scan, group, to, scratch);
    for (size_t i = next_edge(scan, group, group->first, to->top, to->bottom); i < last;
         i = next_edge(scan, group, i + 1, to->top, to->bottom)) {
        fill_level(&scan->edge[i], to, group->polygon + 1);
        if (scan->rule == PB_SCAN_TOUCHED)
            fill_touched(&scan->edge[i], to, group->polygon + 1);
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
        for (size_t m = scan->band[band]; m < scan->band[band + 1]; m++) {
            const struct group *const group = &scan->group[scan->member[m]];
            if (group->right >= to.left && group->left <= to.right)
                fill_group(scan, group, &to, scratch);
        }
        y = to.bottom;
    }
}

/* Reports the runs of one polygon; leaves the target all zero. */
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

/* Parts of a polygon among the members of a band. */
struct polygon_members {
    const struct pb_polygon_scan *scan;
    size_t first, end;
};

/* Returns the first member that is not of the same polygon; parts of a polygon are consecutive. */
static size_t end_of_polygon(const struct pb_polygon_scan *scan, size_t first, size_t last)
{
    const uint32_t polygon = scan->group[scan->member[first]].polygon;
    size_t end = first + 1;
    while (end < last && scan->group[scan->member[end]].polygon == polygon)
        end++;
    return end;
}

/* Returns the target limited to the columns between two coordinates, with one more on each side. */
static struct target narrow(const struct target *to, double left, double right)
{
    struct target out = *to;
    out.left = (int32_t)fmin(fmax(floor(left) - 1, to->left), to->right);
    out.right = (int32_t)fmin(fmax(ceil(right) + 1, out.left), to->right);
    out.zones += out.left - to->left;
    return out;
}

/* Reports the pixels of the target in a polygon, whose parts are the members first .. end of a
 * band. */
static bool give_polygon(const struct polygon_members *of, const struct target *all,
                         struct scratch *scratch, pb_polygon_run *run, void *user)
{
    double left = INFINITY, right = -INFINITY;
    for (size_t m = of->first; m < of->end; m++) {
        const struct group *const group = &of->scan->group[of->scan->member[m]];
        if (group->right < all->left || group->left > all->right)
            continue;
        left = fmin(left, group->left);
        right = fmax(right, group->right);
    }
    if (left > right)
        return true;
    const struct target to = narrow(all, left, right);
    for (size_t m = of->first; m < of->end; m++) {
        const struct group *const group = &of->scan->group[of->scan->member[m]];
        if (group->right >= all->left && group->left <= all->right)
            fill_group(of->scan, group, &to, scratch);
    }
    return give_runs(&to, of->scan->group[of->scan->member[of->first]].polygon, run, user);
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
        struct polygon_members of = {scan, scan->band[band], 0};
        for (; of.first < scan->band[band + 1]; of.first = of.end) {
            of.end = end_of_polygon(scan, of.first, scan->band[band + 1]);
            if (!give_polygon(&of, &all, scratch, run, user))
                return false;
        }
        y = all.bottom;
    }
    return true;
}
