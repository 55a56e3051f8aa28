/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_THREADS_H
#define PB_PLAN_THREADS_H
/* Threads of a pass, their slots and the window of tiles in flight: part of making a plan. Pure. */
#include "pipeline/plan/plan.h"

/* Sets them for n threads in each stage, for a plan whose order is known. lean: with less memory,
 * at a little cost in speed. */
void pb_plan_set_threads(struct pb_plan *plan, const struct pb_plan_request *request, uint32_t n,
                         bool lean);
#endif
