/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_threads.h"

enum { STREAMS = 4, GROUP_MOST = 64 };

/* True if a source decodes from its top only. */
static bool is_top_down(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    bool top_down = plan->work.source[0].n_bands > 0 && r->info->top_down;
    for (size_t i = 0; i < r->n_others; i++)
        top_down =
            top_down || (plan->work.source[i + 1].n_bands > 0 && r->others[i].info->top_down);
    return top_down;
}

/* A thread has one tile at a time, and a slot of each kind. A tile that completes blocks of
 * overviews takes several times as long as others: meanwhile these continue within the window.
 * Measured with 2 threads: a window of n + 1 tiles or of 2 units costs 0 to 1 %, one of n
 * tiles 5 to 20 %. */
static void set_workers(struct pb_plan *plan, uint32_t n, bool lean)
{
    uint32_t tiles = lean ? n : 2 * n,
             unit = pb_order_unit_max(&plan->layout.grid, plan->layout.order);
    plan->layout.workers = plan->layout.writers = plan->layout.in_slots = plan->layout.out_slots =
        n;
    plan->layout.window_units = n == 1 ? 1 : (tiles + unit - 1) / unit + 1;
}

void pb_plan_set_threads(struct pb_plan *plan, const struct pb_plan_request *r, uint32_t n,
                         bool lean)
{
    plan->layout.readers = is_top_down(plan, r) ? 1 : n;
    if (plan->layout.by_workers) {
        set_workers(plan, n, lean);
        return;
    }
    plan->layout.workers = plan->engine.cuda ? STREAMS : n;
    plan->layout.writers = n;
    plan->layout.in_slots = (lean ? n : plan->layout.readers + plan->layout.workers) + 1;
    /* Blocks that are read in place occupy their slots until they are decoded: those of a group,
     * and meanwhile those of the next one. */
    if (plan->engine.whole.used && plan->engine.whole.in_place)
        plan->layout.in_slots +=
            2 * (plan->engine.whole.streams < GROUP_MOST ? plan->engine.whole.streams : GROUP_MOST);
    plan->layout.out_slots = (lean ? n : plan->layout.workers + plan->layout.writers) + 1;
    uint32_t tiles = plan->layout.in_slots + plan->layout.out_slots + (lean ? 0 : 2 * n);
    uint32_t unit = pb_order_unit_max(&plan->layout.grid, plan->layout.order);
    plan->layout.window_units = (tiles + unit - 1) / unit + n;
}
