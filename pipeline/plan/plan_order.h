/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_ORDER_H
#define PB_PLAN_ORDER_H
/* Visiting order of tiles. Private to plan.c. */
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
#endif
