/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_POLYGON_SCAN_INSIDE_H
#define PB_POLYGON_SCAN_INSIDE_H
/* Data of a polygon scan (polygon_scan_make.c makes it, polygon_scan.c uses it). Rows are
 * divided into bands of BAND_ROWS. Each band lists the parts of polygons that overlap it, in
 * their order. The edges of a part are stored once, sorted by their upper end; for each
 * EDGE_BLOCK of them the lowest end is stored, so that blocks which end above a tile are
 * skipped. */
#include "pipeline/raster/polygon_scan.h"

#include <math.h>

#define BAND_ROWS  64
#define EDGE_BLOCK 64

/* Edge from the upper to the lower end. A horizontal edge keeps its direction in the ring: one from
 * right to left is a lower edge of its polygon. */
struct edge {
    double x0, y0, x1, y1;
};

/* A part of a polygon that meets the grid. */
struct group {
    uint32_t polygon;
    double left, right;
    size_t first, n; /* edges */
};

struct pb_polygon_scan {
    int32_t w, h;
    enum pb_scan_rule rule;
    size_t n_bands;
    size_t *band;     /* n_bands + 1: index of the first member of each band */
    uint32_t *member; /* indices of groups */
    size_t n_members;
    struct group *group;
    size_t n_groups;
    struct edge *edge;
    size_t n_edges;
    double *lowest; /* largest y1 of each EDGE_BLOCK edges */
    size_t most;    /* crossings that a scratch holds: at least those of one row and group */
};

/* Rows of a tile inside one band, and the destination of their zones. */
struct target {
    int32_t top, bottom; /* rows of the grid, bottom excluded */
    int32_t left, right; /* columns, right excluded */
    uint32_t *zones;     /* zone of the pixel left, top */
    size_t stride;
};

/* Finds the rows of the target whose centres the edge crosses. */
static inline bool crossed(const struct edge *e, const struct target *to, int32_t *out_first,
                           int32_t *out_end)
{
    const double first = fmax(ceil(e->y0 - 0.5), to->top),
                 end = fmin(ceil(e->y1 - 0.5), to->bottom);
    *out_first = first < end ? (int32_t)first : 0;
    *out_end = first < end ? (int32_t)end : 0;
    return first < end;
}
#endif
