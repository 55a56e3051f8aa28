/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Values on grids of other frames. */
#include "kernels/graph/graph.h"
#include "kernels/resample/warp_pixel.h"

const struct pb_graph_warp *pb_graph_warp(const struct pb_graph *graph, int32_t from, int32_t to)
{
    for (size_t i = 0; i < graph->n_warps; i++)
        if (graph->warps[i].from == from && graph->warps[i].to == to)
            return &graph->warps[i];
    return NULL;
}

/* The grid whose pixels lie at the corners of the pixels of that one. */
static int32_t corners_of(struct pb_graph *graph, int32_t grid)
{
    struct pb_geometry at = graph->grids[grid];

    at.w++;
    at.h++;
    at.map.offset_x += 0.5;
    at.map.offset_y += 0.5;
    return pb_graph_grid(graph, &at);
}

pb_value pb_graph_warped(struct pb_graph *graph, enum pb_resampling how, pb_value x, int32_t grid)
{
    const struct pb_graph_warp *const way =
        pb_graph_warp(graph, graph->grids[graph->nodes[x].grid].frame, graph->grids[grid].frame);

    if (way->heights < 0)
        return pb_graph_resample(graph, how, x, grid);
    const int32_t at = pb_warp_is_area(how) ? corners_of(graph, grid) : grid;
    if (at < 0)
        return at;
    const pb_value heights = pb_graph_add(graph, &(struct pb_node){.kind = PB_NODE_RESAMPLE,
                                                                   .arity = 1,
                                                                   .arg = {way->heights, -1, -1},
                                                                   .index = PB_BILINEAR,
                                                                   .grid = at,
                                                                   .number = 1});
    if (heights < 0)
        return heights;
    return pb_graph_add(graph, &(struct pb_node){.kind = PB_NODE_RESAMPLE,
                                                 .arity = 2,
                                                 .arg = {x, heights, -1},
                                                 .index = (uint32_t)how,
                                                 .grid = grid});
}
