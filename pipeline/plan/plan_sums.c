/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A pass that only has loops of k-means is summed up in the memory that has its tiles: a part of
 * some thousand pixels gives some kilobytes of results. The parts are those of a resident kernel
 * that processes whole tiles, so that streams have the same slots. */
#include "pipeline/plan/plan_sums.h"
#include "pipeline/plan/plan_resident.h"

#include <string.h>

/* Threads of a kernel that is launched per tile; a block of this size must fit in any case. */
enum { THREADS = 32 };

int pb_plan_sums_measure(const struct pb_plan *plan, uint32_t threads, uint32_t shared_limit,
                         struct pb_chain_block_needs *out_needs,
                         struct pb_chain_sums_scratch *out_scratch)
{
    return pb_chain_sums_measure(plan->chain, &plan->sums.chain, plan->sums.part_w,
                                 plan->sums.part_h, threads, shared_limit, out_needs, out_scratch);
}

struct pb_plan_sums pb_plan_sums(const struct pb_plan *plan)
{
    struct pb_chain_block_needs needs;
    struct pb_chain_sums_scratch scratch;
    struct pb_plan with = *plan;
    memset(&with.sums, 0, sizeof with.sums);
    if (!plan->cuda || !plan->is_earlier)
        return with.sums;
    with.sums.chain = pb_chain_sums_find(plan->chain);
    pb_plan_cut_parts(plan, &with.sums.part_w, &with.sums.part_h);
    if (with.sums.chain.n == 0 ||
        pb_plan_sums_measure(&with, THREADS, PB_CHAIN_BLOCK_SHARED, &needs, &scratch) < 0)
        memset(&with.sums, 0, sizeof with.sums);
    return with.sums;
}

size_t pb_plan_sums_tile_bytes(const struct pb_plan *plan)
{
    return pb_slot_align(plan->in_slot_bytes - plan->format.head_bytes, PB_PLANE_ALIGN);
}

void pb_plan_sums_head(const struct pb_plan *plan, uint32_t round, struct pb_slot_head *out_head)
{
    memset(out_head, 0, plan->format.head_bytes);
    out_head->round = round;
    pb_chain_sums_numbers(plan->chain, &plan->sums.chain, (float *)(out_head + 1));
}
