/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_POLYGON_SCAN_INSIDE_H
#define PB_POLYGON_SCAN_INSIDE_H
/* What a scan of polygons holds (polygon_scan_make.c makes it, polygon_scan.c goes through it).
 * Rows are divided into bands of BAND_ROWS. Each band lists the parts of polygons that reach into
 * it, in their order. The edges of a part are stored once, sorted by their upper end; of each
 * EDGE_BLOCK of them the lowest end is known, so those that end above a tile are skipped. */
#include "pipeline/raster/polygon_scan.h"

#include <math.h>

#define BAND_ROWS  64
#define EDGE_BLOCK 64

/* From the upper to the lower end. Of a horizontal one x0 is the left end. */
struct edge {
    double x0, y0, x1, y1;
    bool leftward; /* as the ring goes: a horizontal edge is then a lower one */
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
    size_t *band;     /* n_bands + 1: the first member of each */
    uint32_t *member; /* groups */
    size_t n_members;
    struct group *group;
    size_t n_groups;
    struct edge *edge;
    size_t n_edges;
    double *lowest; /* y1 of each EDGE_BLOCK edges */
    size_t most;    /* crossings that a scratch holds: at least those of one row and group */
};

/* A tile's rows inside one band, and where its zones go. */
struct target {
    int32_t top, bottom; /* rows of the grid, bottom excluded */
    int32_t left, right; /* columns, right excluded */
    uint32_t *zones;     /* of the pixel left, top */
    size_t stride;
};

/* The rows of the target whose centres the edge crosses. */
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
