/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_WHOLE_H
#define PB_PLAN_WHOLE_H
#include "pipeline/plan/plan.h"

/* For the chain, sources, sums, gate and kind of memory of the plan: whether blocks go to the GPU
 * as they are stored, or why not. A why_not that the plan has already stays. Arithmetic only. */
struct pb_plan_whole pb_plan_whole(const struct pb_plan *plan,
                                   const struct pb_plan_request *request);
#endif
