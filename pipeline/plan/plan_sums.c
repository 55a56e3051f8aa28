/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A pass that only has loops of k-means is summed up in the memory that has its tiles: a part of
 * some thousand pixels gives some kilobytes of results. The parts are those of a resident kernel
 * that processes whole tiles, so that streams have the same slots. */
#include "pipeline/plan/plan_sums.h"
#include "pipeline/plan/engine.h"

#include <string.h>

/* Threads of a kernel that is launched per tile; a block of this size must fit in any case. */
enum { THREADS = 32 };

int pb_plan_sums_measure(const struct pb_plan *plan, uint32_t threads, uint32_t shared_limit,
                         struct pb_chain_block_needs *out_needs,
                         struct pb_chain_sums_scratch *out_scratch)
{
    return pb_chain_sums_measure(plan->work.chain, &plan->layout.sums.chain,
                                 plan->layout.sums.part_w, plan->layout.sums.part_h, threads,
                                 shared_limit, out_needs, out_scratch);
}

struct pb_plan_sums pb_plan_sums(const struct pb_plan *plan)
{
    struct pb_chain_block_needs needs;
    struct pb_chain_sums_scratch scratch;
    struct pb_plan with = *plan;
    memset(&with.layout.sums, 0, sizeof with.layout.sums);
    if (!plan->engine.cuda || !plan->is_earlier)
        return with.layout.sums;
    with.layout.sums.chain = pb_chain_sums_find(plan->work.chain);
    pb_plan_cut_parts(plan, &with.layout.sums.part_w, &with.layout.sums.part_h);
    if (with.layout.sums.chain.n == 0 ||
        pb_plan_sums_measure(&with, THREADS, PB_CHAIN_BLOCK_SHARED, &needs, &scratch) < 0)
        memset(&with.layout.sums, 0, sizeof with.layout.sums);
    return with.layout.sums;
}

size_t pb_plan_sums_tile_bytes(const struct pb_plan *plan)
{
    return pb_slot_align(plan->layout.in_slot_bytes - plan->layout.format.head_bytes,
                         PB_PLANE_ALIGN);
}

void pb_plan_sums_head(const struct pb_plan *plan, uint32_t round, struct pb_slot_head *out_head)
{
    memset(out_head, 0, plan->layout.format.head_bytes);
    out_head->round = round;
    pb_chain_sums_numbers(plan->work.chain, &plan->layout.sums.chain, (float *)(out_head + 1));
}
