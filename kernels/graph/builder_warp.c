/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Grids in other coordinate systems. */
#include "kernels/graph/builder_state.h"
#include "kernels/tiling.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct pb_ground *pb_builder_ground(const struct pb_builder *b, int32_t frame)
{
    return frame > 0 && frame <= b->graph.n_frames ? &b->graph.ground[frame - 1] : NULL;
}

/* Makes the frame; takes warp and the ground's text. */
static int32_t add_frame(struct pb_builder *b, int32_t from, const struct pb_ground *ground,
                         struct pb_warp *warp, int32_t w, int32_t h)
{
    struct pb_graph *const graph = &b->graph;
    const struct pb_geometry grid = {w, h, pb_map_identity(), graph->n_frames + 1};

    graph->ground[graph->n_frames++] = *ground;
    graph->warps[graph->n_warps++] = (struct pb_graph_warp){from, grid.frame, warp};
    return pb_builder_add_grid(b, &grid);
}

static int report(struct pb_builder *b, int rc, const char *why)
{
    if (rc == -ENOMEM) {
        b->error = b->error ? b->error : rc;
        return -1;
    }
    (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0, "%s",
                             rc == -E2BIG ? "the way between the two coordinate systems is so "
                                            "uneven that its table would not fit into 64 MiB; warp "
                                            "a smaller area"
                                          : why);
    return -1;
}

/* Whether a place of the new grid lies in the part that bands have, as far as the tree's squares
 * show: each lies in the rectangle around its known positions. */
static bool meets(const struct pb_warp *warp, const double part[4])
{
    for (size_t i = 0; i < warp->n_leaf; i++) {
        const struct pb_warp_leaf *const leaf = &warp->leaf[i];
        double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;

        for (int k = 0; k < PB_WARP_KNOWN; k++) {
            x0 = fmin(x0, leaf->x[k]);
            x1 = fmax(x1, leaf->x[k]);
            y0 = fmin(y0, leaf->y[k]);
            y1 = fmax(y1, leaf->y[k]);
        }
        if (x0 < part[2] && x1 > part[0] && y0 < part[3] && y1 > part[1])
            return true;
    }
    return false;
}

/* The bounds are the user's own, or those of the tile that products are made of. */
static void report_outside(struct pb_builder *b, const struct pb_ground_ask *ask)
{
    const struct pb_ground_tile *const tile = b->scene->tile;
    const bool is_tile =
        tile != NULL && memcmp(tile->bounds, ask->bounds, sizeof tile->bounds) == 0;

    (void)pb_builder_mistake(b, PB_DIAG_OUTSIDE, NULL, 0, "the scene lies outside of %s%s",
                             is_tile ? "tile " : "the bounds", is_tile ? tile->id : "");
}

/* The way from the new grid to that of frame `own`, which has the reference grid of w x h. */
static int32_t open_way(struct pb_builder *b, const struct pb_ground_finder *finder,
                        const struct pb_ground_ask *ask, int32_t own)
{
    struct pb_ground_way way = {0};
    struct pb_warp *warp = NULL;
    char why[300] = "";
    int rc = finder->open(finder->of, ask, why, sizeof why, &way);

    if (rc < 0)
        return report(b, rc, why);
    rc = pb_warp_create(way.w, way.h, ask->source_w, ask->source_h, finder->points, way.transform,
                        way.error_px, &warp);
    finder->close(way.transform);
    if (rc < 0) {
        free(way.ground.crs);
        return report(b, rc, why);
    }
    if (ask->has_bounds && !meets(warp, ask->part)) {
        report_outside(b, ask);
        free(way.ground.crs);
        pb_warp_put(warp);
        return -1;
    }
    return add_frame(b, own, &way.ground, warp, way.w, way.h);
}

/* The first grid of a frame is the one that its others refer to. */
static const struct pb_geometry *reference_of(const struct pb_graph *graph, int32_t frame)
{
    size_t i = 0;

    while (i < graph->n_grids && graph->grids[i].frame != frame)
        i++;
    return &graph->grids[i];
}

void pb_builder_part(const struct pb_builder *b, int32_t grid, double out_part[4])
{
    const struct pb_geometry *const g = &b->graph.grids[grid];

    out_part[0] = -g->map.offset_x / g->map.scale_x;
    out_part[1] = -g->map.offset_y / g->map.scale_y;
    out_part[2] = (g->w - g->map.offset_x) / g->map.scale_x;
    out_part[3] = (g->h - g->map.offset_y) / g->map.scale_y;
}

int32_t pb_builder_warp(struct pb_builder *b, const struct pb_ground_ask *ask, int32_t grid)
{
    struct pb_ground_ask full = *ask;

    if (b->error || (size_t)grid >= b->graph.n_grids)
        return -1;
    const int32_t own = b->graph.grids[grid].frame;
    if (b->graph.n_frames == PB_GRAPH_WARPS_MAX || b->graph.n_warps == PB_GRAPH_WARPS_MAX) {
        (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0,
                                 "the steps change the coordinate system more than %d times",
                                 PB_GRAPH_WARPS_MAX);
        return -1;
    }
    if (b->scene->assumed) {
        const struct pb_ground nowhere = {.crs = NULL};
        const struct pb_geometry same = b->graph.grids[grid];
        return add_frame(b, own, &nowhere, NULL, same.w, same.h);
    }
    if (isnan(b->graph.grids[grid].map.scale_x)) {
        (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0, "a band is of " PB_UNPLACED_SOURCE);
        return -1;
    }
    if (b->scene->ground == NULL) {
        (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0,
                                 "the scene is not placed on the Earth, so its pixels cannot be "
                                 "brought into another system");
        return -1;
    }
    if (own > 0 && ask->model != PB_GROUND_AUTO) {
        (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0,
                                 "a step before this one has brought the bands into another "
                                 "system, where they have a geotransform: leave 'from' out");
        return -1;
    }
    full.source_w = reference_of(&b->graph, own)->w;
    full.source_h = reference_of(&b->graph, own)->h;
    full.from = pb_builder_ground(b, own);
    return open_way(b, b->scene->ground, &full, own);
}

bool pb_builder_tiles(struct pb_builder *b)
{
    const bool first = !b->has_tiles;

    b->has_tiles = true;
    return first;
}
