/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/chain/chain_frames.h"
#include "kernels/chain/frames_pixel.h"

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
    if (node->number != 1)
        pb_warp_job_scale(out_job);
    add_leg(chain,
            &(struct pb_chain_leg){(uint16_t)node->grid, margin, from->frame, out_job->warp});
    return pb_warp_reach(out_job);
}

/* --- parts ------------------------------------------------------------------------------------ */

struct pb_rect pb_chain_frames_rect(const struct pb_chain *chain, uint16_t grid,
                                    const struct pb_rect *core, int32_t margin)
{
    const struct pb_chain_grid *const g = &chain->grids[grid];
    struct pb_warp_box box = pb_frames_no_box();

    for (size_t i = 0; i < chain->n_legs; i++) {
        const struct pb_chain_leg *const leg = &chain->legs[i];

        if (leg->from_frame != g->frame)
            continue;
        const struct pb_rect rect = pb_chain_rect_on(chain, leg->to_grid, core, leg->to_margin);
        pb_frames_add(&box, leg, &chain->grids[leg->to_grid], g, &rect);
    }
    const struct pb_rect base = pb_frames_rect(&box, g->w, g->h);
    return base.w > 0 ? pb_rect_grow(&base, margin, g->w, g->h) : base;
}

void pb_chain_frames_bases(const struct pb_chain *chain, const struct pb_rect *core,
                           struct pb_rect *bases)
{
    for (size_t i = 0; i < chain->n_grids; i++)
        if (chain->grids[i].frame != chain->frame)
            bases[i] = pb_chain_frames_rect(chain, (uint16_t)i, core, 0);
}

/* --- the order in which a GPU finds them ------------------------------------------------------ */

/* Appends the grids that a grid's base is found from, then the grid. */
static size_t visit(const struct pb_chain *chain, uint16_t grid, uint16_t *order, size_t n)
{
    if (chain->grids[grid].frame == chain->frame)
        return n;
    for (size_t i = 0; i < n; i++)
        if (order[i] == grid)
            return n;
    for (size_t i = 0; i < chain->n_legs; i++)
        if (chain->legs[i].from_frame == chain->grids[grid].frame)
            n = visit(chain, chain->legs[i].to_grid, order, n);
    order[n] = grid;
    return n + 1;
}

size_t pb_chain_frames_order(const struct pb_chain *chain, uint16_t *out_order)
{
    size_t n = 0;

    for (size_t i = 0; i < chain->n_grids && chain->n_legs > 0; i++)
        n = visit(chain, (uint16_t)i, out_order, n);
    return n;
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

static bool has_area_warp(const struct pb_chain *chain)
{
    for (size_t i = 0; i < chain->n_stages; i++)
        for (size_t k = 0; k < chain->stages[i].n_focals; k++) {
            const struct pb_stage_focal *const focal = &chain->stages[i].focals[k];

            if (focal->is_warp && (focal->warp.how == PB_AVERAGE || focal->warp.how == PB_MODE))
                return true;
        }
    return false;
}

enum pb_chain_warp pb_chain_warp(const struct pb_chain *chain)
{
    enum pb_chain_warp most = has_area_warp(chain) ? PB_CHAIN_WARP_AREAS
                              : chain->n_legs > 0  ? PB_CHAIN_WARP
                                                   : PB_CHAIN_NO_WARP;

    for (size_t i = 0; i < chain->n_earlier; i++) {
        const enum pb_chain_warp earlier = pb_chain_warp(chain->earlier[i]);

        most = earlier > most ? earlier : most;
    }
    return most;
}

size_t pb_chain_warp_bytes(const struct pb_chain *chain)
{
    size_t bytes = 0;

    for (size_t i = 0; i < chain->n_warps; i++)
        bytes += pb_warp_bytes(chain->warps[i]);
    return bytes;
}
