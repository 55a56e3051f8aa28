/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_FIT_H
#define PB_PLAN_FIT_H
#include "pipeline/plan/plan.h"

/* Chooses threads, stripes, slots and cells so that all of it keeps the budget; part of making a
 * plan, after chain, grid and order are known. -ENOMEM with the amount that would do. */
int pb_plan_fit(struct pb_plan *plan, const struct pb_plan_request *request, struct pb_err *err);
#endif
