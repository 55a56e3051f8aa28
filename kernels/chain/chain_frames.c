/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/chain/chain_frames.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int pb_chain_frames_init(const struct pb_graph *graph, int32_t out_grid, struct pb_chain *chain)
{
    chain->frame = graph->grids[out_grid].frame;
    chain->warps = calloc(graph->n_warps + 1, sizeof(struct pb_warp *));
    chain->legs = calloc(graph->n + 1, sizeof *chain->legs);
    if (chain->warps == NULL || chain->legs == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < graph->n_warps; i++)
        if (graph->warps[i].warp != NULL)
            chain->warps[chain->n_warps++] = pb_warp_get(graph->warps[i].warp);
    if (chain->frame == 0)
        return 0;
    chain->ground = graph->ground[chain->frame - 1];
    if (chain->ground.crs != NULL)
        chain->ground.crs = strdup(chain->ground.crs);
    return chain->ground.crs != NULL || graph->ground[chain->frame - 1].crs == NULL ? 0 : -ENOMEM;
}

static void add_leg(struct pb_chain *chain, const struct pb_chain_leg *leg)
{
    for (size_t i = 0; i < chain->n_legs; i++) {
        struct pb_chain_leg *const known = &chain->legs[i];

        if (known->to_grid == leg->to_grid && known->warp == leg->warp) {
            if (leg->to_margin > known->to_margin)
                known->to_margin = leg->to_margin;
            return;
        }
    }
    chain->legs[chain->n_legs++] = *leg;
}

int32_t pb_chain_frames_reach(const struct pb_graph *graph, size_t v, int32_t margin,
                              struct pb_chain *chain, struct pb_warp_job *out_job)
{
    const struct pb_node *const node = &graph->nodes[v];
    const struct pb_geometry *const to = &graph->grids[node->grid];
    const struct pb_geometry *const from = &graph->grids[graph->nodes[node->arg[0]].grid];
    const struct pb_graph_warp *const way = pb_graph_warp(graph, from->frame, to->frame);
    const struct pb_map same = pb_map_identity();

    *out_job = (struct pb_warp_job){.how = (enum pb_resampling)node->index,
                                    .warp = way->warp,
                                    .to = pb_map_between(&to->map, &same),
                                    .from = from->map,
                                    .source_w = from->w,
                                    .source_h = from->h,
                                    .scale_x = 1,
                                    .scale_y = 1};
    if (way->warp == NULL) /* of an assumed scene: no pixel is made */
        return 0;
    pb_warp_job_scale(out_job);
    add_leg(chain,
            &(struct pb_chain_leg){(uint16_t)node->grid, margin, from->frame, out_job->warp});
    return pb_warp_reach(out_job);
}

/* --- parts ------------------------------------------------------------------------------------ */

/* What the rect of a leg's grid needs of the frame that it comes from, in pixels of the grid which
 * that refers to. */
static struct pb_warp_box leg_box(const struct pb_chain *chain, const struct pb_chain_leg *leg,
                                  const struct pb_rect *core)
{
    const struct pb_rect rect = pb_chain_rect_on(chain, leg->to_grid, core, leg->to_margin);
    const struct pb_map *const own = &chain->grids[leg->to_grid].own;
    const struct pb_warp_box none = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    const struct pb_warp_box area = {(rect.x - own->offset_x) / own->scale_x,
                                     (rect.y - own->offset_y) / own->scale_y,
                                     (rect.x + rect.w - own->offset_x) / own->scale_x,
                                     (rect.y + rect.h - own->offset_y) / own->scale_y};

    return rect.w == 0 ? none : pb_warp_bounds(leg->warp, &area);
}

struct pb_rect pb_chain_frames_rect(const struct pb_chain *chain, uint16_t grid,
                                    const struct pb_rect *core, int32_t margin)
{
    const struct pb_chain_grid *const g = &chain->grids[grid];
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    struct pb_rect base = {0, 0, 0, 0};

    for (size_t i = 0; i < chain->n_legs; i++) {
        if (chain->legs[i].from_frame != g->frame)
            continue;
        const struct pb_warp_box box = leg_box(chain, &chain->legs[i], core);
        x0 = fmin(x0, box.x0 * g->own.scale_x + g->own.offset_x);
        y0 = fmin(y0, box.y0 * g->own.scale_y + g->own.offset_y);
        x1 = fmax(x1, box.x1 * g->own.scale_x + g->own.offset_x);
        y1 = fmax(y1, box.y1 * g->own.scale_y + g->own.offset_y);
    }
    x0 = fmax(floor(x0), 0);
    y0 = fmax(floor(y0), 0);
    x1 = fmin(ceil(x1), g->w);
    y1 = fmin(ceil(y1), g->h);
    if (!(x1 > x0 && y1 > y0))
        return base;
    base = (struct pb_rect){(int32_t)x0, (int32_t)y0, (int32_t)(x1 - x0), (int32_t)(y1 - y0)};
    return pb_rect_grow(&base, margin, g->w, g->h);
}

void pb_chain_frames_bases(const struct pb_chain *chain, const struct pb_rect *core,
                           struct pb_rect *bases)
{
    for (size_t i = 0; i < chain->n_leaf_places; i++)
        if (chain->leaf_places[i].apart)
            bases[i] = pb_chain_frames_rect(chain, (uint16_t)chain->leaf_places[i].grid, core, 0);
}

struct pb_rect pb_chain_frames_largest(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                                       uint16_t grid, int32_t margin)
{
    const struct pb_chain_grid *const g = &chain->grids[grid];
    double w = 0, h = 0;
    size_t n = 0;

    for (size_t i = 0; i < chain->n_legs; i++) {
        const struct pb_chain_leg *const leg = &chain->legs[i];
        double leg_w, leg_h;

        if (leg->from_frame != g->frame)
            continue;
        const struct pb_rect rect =
            pb_chain_largest_rect(chain, core_w, core_h, leg->to_grid, leg->to_margin);
        const struct pb_map *const own = &chain->grids[leg->to_grid].own;
        pb_warp_most(leg->warp, rect.w / own->scale_x, rect.h / own->scale_y, &leg_w, &leg_h);
        n++; /* several may lie anywhere */
        w = n > 1 ? g->w : leg_w * g->own.scale_x;
        h = n > 1 ? g->h : leg_h * g->own.scale_y;
    }
    w = ceil(w) + 2 + 2.0 * margin;
    h = ceil(h) + 2 + 2.0 * margin;
    return (struct pb_rect){0, 0, w < g->w ? (int32_t)w : g->w, h < g->h ? (int32_t)h : g->h};
}

const struct pb_ground *pb_chain_ground(const struct pb_chain *chain)
{
    return chain->frame > 0 ? &chain->ground : NULL;
}

bool pb_chain_has_warp(const struct pb_chain *chain)
{
    bool has = chain->n_legs > 0;

    for (size_t i = 0; i < chain->n_earlier && !has; i++)
        has = pb_chain_has_warp(chain->earlier[i]);
    return has;
}

size_t pb_chain_warp_bytes(const struct pb_chain *chain)
{
    size_t bytes = 0;

    for (size_t i = 0; i < chain->n_warps; i++)
        bytes += pb_warp_bytes(chain->warps[i]);
    return bytes;
}
