/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/polygon_scan_inside.h"
#include "pipeline/raster/polygons.h"

#include <stdlib.h>
#include <string.h>

/* Least number of crossings that a scratch holds. */
enum { CROSSINGS = 4096 };

/* Returns true if an edge may touch pixels of the grid's rows. */
static bool reaches(const struct pb_polygon_scan *scan, const struct edge *e)
{
    return e->y1 >= 0 && e->y0 <= scan->h;
}

static struct edge edge_of(const double from[2], const double to[2])
{
    const double *a = from[1] > to[1] ? to : from, *b = a == from ? to : from;
    return (struct edge){a[0], a[1], b[0], b[1]};
}

/* A part of a polygon. */
struct part {
    const struct pb_polygons *polygons;
    size_t polygon, ring, end; /* its rings: from ring to end */
};

/* Steps to the next part; returns false after the last one. A struct with only `polygons` set
 * steps to the first part. */
static bool next_part(struct part *part)
{
    const struct pb_polygons *all = part->polygons;
    const struct pb_polygon *polygon = NULL;
    for (; part->polygon < all->n; part->polygon++) {
        polygon = &all->polygon[part->polygon];
        if (part->end < polygon->first_ring)
            part->end = polygon->first_ring;
        if (part->end < polygon->first_ring + polygon->n_rings)
            break;
    }
    if (part->polygon >= all->n || polygon == NULL)
        return false;
    part->ring = part->end++;
    while (part->end < polygon->first_ring + polygon->n_rings &&
           all->ring[part->end].part == all->ring[part->ring].part)
        part->end++;
    return true;
}

/* Counts the edges of a part's rings that overlap the grid's rows, and copies them to `out` if
 * it is not NULL. */
static size_t edges_of(const struct pb_polygon_scan *scan, const struct part *part,
                       struct edge *out)
{
    size_t n = 0;
    for (size_t r = part->ring; r < part->end; r++) {
        const struct pb_polygons *polygons = part->polygons;
        const struct pb_ring *ring = &polygons->ring[r];
        const double(*xy)[2] = (const double(*)[2])(polygons->xy + ring->first);
        for (size_t i = ring->is_open; i < ring->n; i++) {
            const struct edge e = edge_of(xy[i > 0 ? i - 1 : ring->n - 1], xy[i]);
            if (!reaches(scan, &e))
                continue;
            if (out != NULL)
                out[n] = e;
            n++;
        }
    }
    return n;
}

/* Finds the bands that a part overlaps, and its left and right; returns false without bands. */
static bool bands_of(const struct pb_polygon_scan *scan, const struct part *part, struct group *out,
                     size_t *out_first, size_t *out_last)
{
    const struct pb_polygons *polygons = part->polygons;
    double top = INFINITY, bottom = -INFINITY;
    out->left = INFINITY;
    out->right = -INFINITY;
    for (size_t r = part->ring; r < part->end; r++) {
        const struct pb_ring *ring = &polygons->ring[r];
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

/* Counts the members, groups and edges of the scan. */
static void count(struct pb_polygon_scan *scan, const struct pb_polygons *polygons)
{
    for (struct part part = {polygons, 0, 0, 0}; next_part(&part);) {
        struct group group;
        size_t first, last;
        if (!bands_of(scan, &part, &group, &first, &last))
            continue;
        scan->n_groups++;
        scan->n_members += last - first + 1;
        scan->n_edges += edges_of(scan, &part, NULL);
    }
}

static int by_upper_end(const void *a, const void *b)
{
    const struct edge *const x = a, *const y = b;
    return (x->y0 > y->y0) - (x->y0 < y->y0);
}

/* Stores groups with their edges; band[b + 1] becomes the number of members of band b. */
static void put_groups(struct pb_polygon_scan *scan, const struct pb_polygons *polygons)
{
    size_t at = 0, g = 0;
    for (struct part part = {polygons, 0, 0, 0}; next_part(&part);) {
        struct group group = {.polygon = (uint32_t)part.polygon};
        size_t first, last;
        if (!bands_of(scan, &part, &group, &first, &last))
            continue;
        group.first = at;
        group.n = edges_of(scan, &part, scan->edge + at);
        qsort(scan->edge + at, group.n, sizeof *scan->edge, by_upper_end);
        at += group.n;
        scan->group[g++] = group;
        for (size_t b = first; b <= last; b++)
            scan->band[b + 1]++;
    }
    for (size_t i = 0; i < scan->n_edges; i++) {
        double *const lowest = &scan->lowest[i / EDGE_BLOCK];
        *lowest = i % EDGE_BLOCK == 0 ? scan->edge[i].y1 : fmax(*lowest, scan->edge[i].y1);
    }
}

/* Stores the members of the bands; next: index of the first member of each. */
static void put_members(struct pb_polygon_scan *scan, const struct pb_polygons *polygons,
                        size_t *next)
{
    for (size_t b = 0; b < scan->n_bands; b++) {
        scan->band[b + 1] += scan->band[b];
        next[b] = scan->band[b];
    }
    uint32_t g = 0;
    for (struct part part = {polygons, 0, 0, 0}; next_part(&part);) {
        struct group own;
        size_t first = 0, last = 0;
        if (!bands_of(scan, &part, &own, &first, &last))
            continue;
        for (size_t b = first; b <= last; b++)
            scan->member[next[b]++] = g;
        g++;
    }
}

/* Finds the largest number of crossings of a row and a group; change: h + 1 zeros, zero again on
 * return. */
static void find_most(struct pb_polygon_scan *scan, int32_t *change)
{
    const struct target all = {.bottom = scan->h};
    scan->most = CROSSINGS;
    for (size_t g = 0; g < scan->n_groups; g++) {
        const struct group *const group = &scan->group[g];
        int32_t top = scan->h, bottom = 0, first, end;
        for (size_t i = group->first; i < group->first + group->n; i++) {
            if (!crossed(&scan->edge[i], &all, &first, &end))
                continue;
            change[first]++;
            change[end]--;
            top = first < top ? first : top;
            bottom = end > bottom ? end : bottom;
        }
        size_t n = 0;
        for (int32_t y = top; y <= bottom; y++) {
            n = (size_t)((int64_t)n + change[y]);
            scan->most = n > scan->most ? n : scan->most;
            change[y] = 0;
        }
    }
}

static bool fill_scan(struct pb_polygon_scan *scan, const struct pb_polygons *polygons)
{
    size_t *next = calloc(scan->n_bands, sizeof *next);
    int32_t *change = calloc((size_t)scan->h + 1, sizeof *change);
    scan->band = calloc(scan->n_bands + 1, sizeof *scan->band);
    scan->member = calloc(scan->n_members + 1, sizeof *scan->member);
    scan->group = calloc(scan->n_groups + 1, sizeof *scan->group);
    scan->edge = calloc(scan->n_edges + 1, sizeof *scan->edge);
    scan->lowest = calloc(scan->n_edges / EDGE_BLOCK + 1, sizeof *scan->lowest);
    const bool fine = next != NULL && change != NULL && scan->band != NULL &&
                      scan->member != NULL && scan->group != NULL && scan->edge != NULL &&
                      scan->lowest != NULL;
    if (fine) {
        put_groups(scan, polygons);
        put_members(scan, polygons, next);
        find_most(scan, change);
    }
    free(next);
    free(change);
    return fine;
}

static struct pb_polygon_scan sized(const struct pb_polygons *polygons, int32_t w, int32_t h)
{
    struct pb_polygon_scan scan = {
        .w = w, .h = h, .n_bands = ((size_t)h + BAND_ROWS - 1) / BAND_ROWS};
    count(&scan, polygons);
    return scan;
}

struct pb_polygon_scan *pb_polygon_scan_create(const struct pb_polygons *polygons, int32_t w,
                                               int32_t h, enum pb_scan_rule rule)
{
    struct pb_polygon_scan *scan = calloc(1, sizeof *scan);
    if (scan == NULL)
        return NULL;
    *scan = sized(polygons, w, h);
    scan->rule = rule;
    const bool fine = fill_scan(scan, polygons);
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
    free(scan->member);
    free(scan->lowest);
    free(scan->group);
    free(scan->edge);
    free(scan);
}

size_t pb_polygon_scan_bytes(const struct pb_polygons *polygons, int32_t w, int32_t h)
{
    const struct pb_polygon_scan scan = sized(polygons, w, h);
    return sizeof scan + (scan.n_bands + 1) * sizeof *scan.band +
           scan.n_members * sizeof *scan.member + scan.n_groups * sizeof *scan.group +
           scan.n_edges * sizeof *scan.edge + scan.n_edges / EDGE_BLOCK * sizeof *scan.lowest;
}
