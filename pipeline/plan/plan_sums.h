/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_SUMS_H
#define PB_PLAN_SUMS_H
#include "pipeline/plan/plan.h"

/* For the chain, grid and device of the plan: decides if a GPU sums up the tiles of this pass, and
 * the parts for it. Arithmetic only. */
struct pb_plan_sums pb_plan_sums(const struct pb_plan *plan);
/* Needs of a block of `threads` threads for a part, with at most shared_limit bytes of shared
 * memory. Results as for pb_chain_sums_measure. */
int pb_plan_sums_measure(const struct pb_plan *plan, uint32_t threads, uint32_t shared_limit,
                         struct pb_chain_block_needs *out_needs,
                         struct pb_chain_sums_scratch *out_scratch);
/* Bytes of the largest tile's pixels in a slot. */
size_t pb_plan_sums_tile_bytes(const struct pb_plan *plan);
/* Fills the head of slots in a round, of which plan->format.head_bytes are used. */
void pb_plan_sums_head(const struct pb_plan *plan, uint32_t round, struct pb_slot_head *out_head);
#endif
