/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_CHOOSE_H
#define PB_PLAN_CHOOSE_H
/* Makes the plan of a run, before the first tile is read. A memory budget that is too small is
 * refused, with the amount that would be enough. Thread: any. */
#include "pipeline/plan/plan.h"

/* The caller destroys *out_plan. */
int pb_plan_create(const struct pb_plan_request *request, struct pb_err *err,
                   struct pb_plan **out_plan);
void pb_plan_destroy(struct pb_plan *plan);

/* Steps of planning one pass that the process which owns a GPU uses as well (served.c). */

/* Sets the members that do not depend on the side of a tile: device and memory. Returns the first
 * side to try. */
int32_t pb_plan_begin(struct pb_plan *plan, const struct pb_plan_request *request);
/* Makes the plan with tiles of that side. */
int pb_plan_with_side(const struct pb_plan *base, const struct pb_plan_request *request,
                      int32_t side, struct pb_err *err, struct pb_plan *out_plan);
#endif
