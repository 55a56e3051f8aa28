/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_ORDER_H
#define PB_PLAN_ORDER_H
/* The order in which tiles are visited. Private to plan.c. */
#include "pipeline/plan/plan.h"

/* What costs the least memory. */
enum pb_order pb_plan_order(const struct pb_plan *plan, const struct pb_raster_info *info);
/* Makes plan one that visits whole rows of tiles, in which the blocks of products come in the order
 * of their files. False: no product would gain by that. */
bool pb_plan_by_whole_rows(struct pb_plan *plan, const struct pb_plan_request *request);
/* Whether the plan by whole rows is the better one of the two: it costs no time and the memory that
 * it takes is there. */
bool pb_plan_prefers_rows(const struct pb_plan *rows, const struct pb_plan *other,
                          const struct pb_plan_request *request);
#endif
