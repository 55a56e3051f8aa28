/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The input of a pass with several rounds is kept after the first, if the budget has room for
 * all of it: otherwise the rest of a scene would have to be read again anyway. Tiles that a gate
 * may leave out are read again; and if blocks are sent to a GPU as they are stored, no reader has
 * tiles. */
#include "pipeline/plan/plan_keep.h"

enum { ALIGN = 64 };

size_t pb_plan_kept_bytes_of(const struct pb_plan *plan, uint32_t number)
{
    const struct pb_tile tile = pb_plan_tile(plan, number, 0);
    return pb_slot_align(pb_slot_tile_bytes(&plan->layout.format, &tile), ALIGN);
}

void pb_plan_keep(struct pb_plan *plan, uint64_t budget)
{
    const uint32_t n = pb_grid_count(&plan->layout.grid);
    uint64_t bytes = n * (uint64_t)sizeof(size_t);
    plan->memory.kept_bytes = 0;
    if (!plan->is_earlier || pb_chain_rounds(plan->work.chain) < 2 ||
        plan->layout.gate.chain != NULL || plan->engine.whole.used)
        return;
    for (uint32_t i = 0; i < n && plan->memory.total_bytes + bytes <= budget; i++)
        bytes += pb_plan_kept_bytes_of(plan, i);
    if (plan->memory.total_bytes + bytes > budget)
        return;
    plan->memory.kept_bytes = bytes;
    plan->memory.total_bytes += bytes;
}
