/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Walks of a plan's exchanges. */
#include "pipeline/plan/part_exchange.h"
#include "pipeline/plan/plan.h"
#include "pipeline/plan/tile_exchange.h"

uint64_t pb_plan_unit_bytes(const struct pb_plan *plan)
{
    return pb_order_unit_max(&plan->layout.grid, plan->layout.order) *
           (uint64_t)plan->layout.in_slot_bytes;
}

int pb_plan_exchange(const struct pb_plan *plan, struct pb_err *err,
                     struct pb_tile_exchange *out_walk)
{
    return pb_tile_exchange_init(out_walk, &plan->layout.exchange,
                                 pb_order_units(&plan->layout.grid, plan->layout.order),
                                 plan->layout.window_units, pb_plan_unit_bytes(plan), err);
}

uint32_t pb_plan_tile_parts(const struct pb_plan *plan)
{
    return (uint32_t)plan->work.n_sources + (plan->layout.gate.chain != NULL);
}

int pb_plan_part_exchange(const struct pb_plan *plan, struct pb_err *err,
                          struct pb_part_exchange *out_walk)
{
    return pb_part_exchange_init(out_walk, &plan->layout.exchange, pb_plan_tile_parts(plan),
                                 plan->layout.in_slot_bytes, err);
}
