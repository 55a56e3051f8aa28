/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_PARTS_H
#define PB_PLAN_PARTS_H
/* Steps of planning one pass that plan.c and plan_served.c share. */
#include "pipeline/plan/plan.h"

/* Sets the members that do not depend on the side of a tile: device and memory. Returns the first
 * side to try. */
int32_t pb_plan_begin(struct pb_plan *plan, const struct pb_plan_request *request);
/* Makes the plan with tiles of that side. */
int pb_plan_with_side(const struct pb_plan *base, const struct pb_plan_request *request,
                      int32_t side, struct pb_err *err, struct pb_plan *out_plan);
#endif
