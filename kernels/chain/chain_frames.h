/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_FRAMES_H
#define PB_CHAIN_FRAMES_H
/* Chains over several coordinate systems: which part of a grid of one frame a core of another
 * needs. */
#include "kernels/chain/chain_stage.h"
#include "kernels/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes over the warps of the graph and the place of the outputs' frame. 0 or -ENOMEM. */
int pb_chain_frames_init(const struct pb_graph *graph, int32_t out_grid, struct pb_chain *chain);
/* Of node v, a plane of another frame than its operand; margin: of v. Adds what it needs to the
 * legs, and returns how far beyond its positions its operand must reach. -ENOMEM. */
int32_t pb_chain_frames_reach(const struct pb_graph *graph, size_t v, int32_t margin,
                              struct pb_chain *chain, struct pb_warp_job *out_job);
/* pb_chain_rect_on and pb_chain_largest_rect for a grid of another frame than the outputs'. */
struct pb_rect pb_chain_frames_rect(const struct pb_chain *chain, uint16_t grid,
                                    const struct pb_rect *core, int32_t margin);
/* Of each grid of another frame than the outputs', by its number: that rect, with margin 0. */
void pb_chain_frames_bases(const struct pb_chain *chain, const struct pb_rect *core,
                           struct pb_rect *bases);
/* The numbers of these grids, each behind those that its rect is found from. Returns how many. */
size_t pb_chain_frames_order(const struct pb_chain *chain, uint16_t *out_order);
struct pb_rect pb_chain_frames_largest(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                                       uint16_t grid, int32_t margin);
#ifdef __cplusplus
}
#endif
#endif
