/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_SUMS_H
#define PB_PLAN_SUMS_H
#include "pipeline/plan/plan.h"

/* For the chain, grid and device of the plan: whether a GPU sums up the tiles of this pass, and in
 * what parts. Arithmetic only. */
struct pb_plan_sums pb_plan_sums(const struct pb_plan *plan);
/* What a block of `threads` threads needs for a part, in at most shared_limit bytes of shared
 * memory. As pb_chain_sums_measure. */
int pb_plan_sums_measure(const struct pb_plan *plan, uint32_t threads, uint32_t shared_limit,
                         struct pb_chain_block_needs *out_needs,
                         struct pb_chain_sums_scratch *out_scratch);
/* Bytes of the largest tile's pixels in a slot. */
size_t pb_plan_sums_tile_bytes(const struct pb_plan *plan);
/* The head of slots in a round, plan->format.head_bytes of it. */
void pb_plan_sums_head(const struct pb_plan *plan, uint32_t round, struct pb_slot_head *out_head);
#endif
