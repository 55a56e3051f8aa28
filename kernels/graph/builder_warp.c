/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Grids in other coordinate systems. */
#include "kernels/graph/builder_state.h"
#include "kernels/graph/way.h"
#include "kernels/tiling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct pb_ground *pb_builder_ground(const struct pb_builder *b, int32_t frame)
{
    return frame > 0 && frame <= b->graph.n_frames ? &b->graph.ground[frame - 1] : NULL;
}

/* Makes the frame, without a way to it; takes the ground's text. */
static int32_t add_frame(struct pb_builder *b, const struct pb_ground *ground, int32_t w, int32_t h)
{
    struct pb_graph *const graph = &b->graph;
    const struct pb_geometry grid = {w, h, pb_map_identity(), graph->n_frames + 1};

    graph->ground[graph->n_frames++] = *ground;
    return pb_builder_add_grid(b, &grid);
}

/* Between frames; takes warp. */
static void add_way(struct pb_builder *b, int32_t from, int32_t to, struct pb_warp *warp,
                    pb_value heights)
{
    b->graph.warps[b->graph.n_warps++] = (struct pb_graph_warp){from, to, warp, heights};
}

static int report(struct pb_builder *b, int rc, const char *why)
{
    if (rc == -ENOMEM) {
        b->error = b->error ? b->error : rc;
        return -1;
    }
    const enum pb_diag_kind kind = rc == -EFBIG  ? PB_DIAG_LIMIT
                                   : rc == -EDOM ? PB_DIAG_PLACE
                                                 : PB_DIAG_GRID;

    (void)pb_builder_mistake(b, kind, NULL, 0, "%s",
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
    for (uint32_t i = 1; i < warp->n_heights; i++)
        if (meets(&warp->above[i - 1], part))
            return true;
    return false;
}

/* The bounds are the user's own, or those of the tile that products are made of. */
static void report_outside(struct pb_builder *b, const struct pb_ground_ask *ask)
{
    const struct pb_ground_tile *const tile = b->scene->tile;
    const bool is_tile =
        tile != NULL && memcmp(tile->bounds, ask->bounds, sizeof tile->bounds) == 0;

    (void)pb_builder_mistake(b, PB_DIAG_OUTSIDE, NULL, 0, "the scene is outside of %s%s",
                             is_tile ? "tile " : "the bounds", is_tile ? tile->id : "");
}

/* Whether the scene reaches the bounds that were asked for; else reports that. */
static bool reaches(struct pb_builder *b, const struct pb_ground_ask *ask,
                    const struct pb_warp *warp)
{
    if (!ask->has_bounds || meets(warp, ask->part))
        return true;
    report_outside(b, ask);
    return false;
}

static bool grid_fits(void *of, double w, double h)
{
    return pb_builder_grid_fits(of, w, h);
}

/* The way that the step asks for; false: reported. */
static bool find_way(struct pb_builder *b, struct pb_way_ask *ask, struct pb_way *out)
{
    const struct pb_way_finder *const finder = b->scene->ways;
    char why[300] = "";

    ask->fits = grid_fits;
    ask->fits_of = b;
    const int rc = finder->find(finder->of, ask, why, sizeof why, out);
    if (rc == 0 && reaches(b, ask->ask, out->warp))
        return true;
    pb_way_release(out);
    if (rc < 0 && rc != -ECANCELED)
        (void)report(b, rc, why);
    return false;
}

/* The way from the new grid to that of frame `own`. */
static int32_t open_way(struct pb_builder *b, const struct pb_ground_ask *ask, int32_t own)
{
    struct pb_way_ask full = {.ask = ask};
    struct pb_way way;

    if (!find_way(b, &full, &way))
        return -1;
    const int32_t grid = add_frame(b, &way.ground, way.w, way.h);
    add_way(b, own, b->graph.n_frames, way.warp, -1);
    return grid;
}

/* The same over ground of these heights. */
static int32_t open_relief(struct pb_builder *b, const struct pb_ground_ask *ask, int32_t own,
                           pb_value heights, const char *band)
{
    const struct pb_node node = b->graph.nodes[heights];
    const struct pb_geometry at = b->graph.grids[node.grid];
    struct pb_way_ask full = {
        .ask = ask, .on_relief = true, .input = node.index, .w = at.w, .h = at.h};
    struct pb_way way;

    if (!find_way(b, &full, &way))
        return -1;
    way.ground.on_relief = true;
    (void)snprintf(way.ground.by, sizeof way.ground.by,
                   "%s on ground of %.0f to %.0f m, which band %.40s has",
                   pb_ground_of_height(ask->model), way.warp->low,
                   way.warp->low + way.warp->step * (way.warp->n_heights - 1), band);
    const int32_t source = add_frame(b, &way.heights_ground, at.w, at.h);
    const int32_t from = b->graph.n_frames;
    const pb_value input = source < 0 ? source : pb_graph_input(&b->graph, node.index, source);
    const int32_t grid = add_frame(b, &way.ground, way.w, way.h);
    add_way(b, from, b->graph.n_frames, way.heights_warp, -1);
    add_way(b, own, b->graph.n_frames, way.warp, input);
    if (input < 0)
        b->error = b->error ? b->error : input;
    return input < 0 ? -1 : grid;
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

/* Whether there is room for n more frames. */
static bool has_room(struct pb_builder *b, int32_t n)
{
    if (b->graph.n_frames + n <= PB_GRAPH_WARPS_MAX &&
        b->graph.n_warps + (size_t)n <= PB_GRAPH_WARPS_MAX)
        return true;
    (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0,
                             "the steps change the coordinate system more than %d times",
                             PB_GRAPH_WARPS_MAX / n);
    return false;
}

/* Whether it is known where the grid lies; else reports that. */
static bool is_placed(struct pb_builder *b, const struct pb_ground_ask *ask, int32_t grid)
{
    const char *why = NULL;

    if (isnan(b->graph.grids[grid].map.scale_x))
        why = "a band is of " PB_UNPLACED_SOURCE;
    else if (b->scene->ways == NULL)
        why = "the scene is not placed on the Earth, so its pixels cannot be brought into another "
              "system";
    else if (b->graph.grids[grid].frame > 0 && ask->model != PB_GROUND_AUTO)
        why = "a step before this one has brought the bands into another system, where they have a "
              "geotransform: leave 'from' out";
    if (why != NULL)
        (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0, "%s", why);
    return why == NULL;
}

static int32_t warp_on(struct pb_builder *b, const struct pb_ground_ask *ask, int32_t grid,
                       pb_value heights, const char *band)
{
    struct pb_ground_ask full = *ask;

    if (b->error || (size_t)grid >= b->graph.n_grids || !has_room(b, heights < 0 ? 1 : 2))
        return -1;
    const int32_t own = b->graph.grids[grid].frame;
    if (b->scene->assumed) {
        const struct pb_ground nowhere = {.crs = NULL};
        const struct pb_geometry same = b->graph.grids[grid];
        const int32_t made = add_frame(b, &nowhere, same.w, same.h);

        add_way(b, own, b->graph.n_frames, NULL, -1);
        return made;
    }
    if (!is_placed(b, ask, grid))
        return -1;
    full.source_w = reference_of(&b->graph, own)->w;
    full.source_h = reference_of(&b->graph, own)->h;
    full.from = pb_builder_ground(b, own);
    return heights < 0 ? open_way(b, &full, own) : open_relief(b, &full, own, heights, band);
}

int32_t pb_builder_warp(struct pb_builder *b, const struct pb_ground_ask *ask, int32_t grid)
{
    return warp_on(b, ask, grid, -1, NULL);
}

int32_t pb_builder_warp_relief(struct pb_builder *b, const struct pb_ground_ask *ask, int32_t grid,
                               pb_value heights, const char *band)
{
    if (b->error || heights == PB_VALUE_POISON)
        return -1;
    if (b->graph.nodes[heights].kind != PB_NODE_INPUT ||
        pb_graph_image_of(&b->graph, &b->graph.nodes[heights]) != NULL) {
        (void)pb_builder_mistake(b, PB_DIAG_BAND, NULL, 0,
                                 "'%.80s' has been changed by a step: heights are a band of a file "
                                 "as it is read; scale and offset of input.sources may change it",
                                 band);
        return -1;
    }
    return warp_on(b, ask, grid, heights, band);
}

bool pb_builder_tiles(struct pb_builder *b)
{
    const bool first = !b->has_tiles;

    b->has_tiles = true;
    return first;
}
