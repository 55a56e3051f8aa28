/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_LAYOUT_H
#define PB_PLAN_LAYOUT_H
/* Visiting order, threads, slots and window of a pass. Pure. */
#include "pipeline/plan/plan.h"

/* Order that needs the least memory. */
enum pb_order pb_plan_order(const struct pb_plan *plan, const struct pb_raster_info *info);
/* Makes plan one that visits whole rows of tiles, which gives the blocks of products in the order
 * of their files. False: that is useless for every product. */
bool pb_plan_by_whole_rows(struct pb_plan *plan, const struct pb_plan_request *request);
/* Returns true if the plan by whole rows is the better one of the two: it takes no more time, and
 * its memory is within the budget. */
bool pb_plan_prefers_rows(const struct pb_plan *rows, const struct pb_plan *other,
                          const struct pb_plan_request *request);

/* Sets threads, slots and window for n threads in each stage, for a plan whose order is known.
 * lean: with less memory, at a little cost in speed. */
void pb_plan_set_threads(struct pb_plan *plan, const struct pb_plan_request *request, uint32_t n,
                         bool lean);
/* Format of slots, plane by plane. */
struct pb_slot_format pb_plan_slot_format(const struct pb_plan *plan);
/* Fills the members of the products' environment that the plan knows. */
void pb_plan_product_env(const struct pb_plan *plan, const struct pb_plan_request *request,
                         struct pb_product_env *out_env);
static inline bool pb_is_power_of_two(int32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}
#endif
