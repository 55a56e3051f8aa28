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
    return pb_slot_align(pb_slot_tile_bytes(&plan->format, &tile), ALIGN);
}

void pb_plan_keep(struct pb_plan *plan, uint64_t budget)
{
    const uint32_t n = pb_grid_count(&plan->grid);
    uint64_t bytes = n * (uint64_t)sizeof(size_t);
    plan->kept_bytes = 0;
    if (!plan->is_earlier || pb_chain_rounds(plan->chain) < 2 || plan->gate.chain != NULL ||
        plan->whole.used)
        return;
    for (uint32_t i = 0; i < n && plan->total_bytes + bytes <= budget; i++)
        bytes += pb_plan_kept_bytes_of(plan, i);
    if (plan->total_bytes + bytes > budget)
        return;
    plan->kept_bytes = bytes;
    plan->total_bytes += bytes;
}
