/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_FIT_H
#define PB_PLAN_FIT_H
#include "pipeline/plan/plan.h"

/* Chooses threads, stripes, slots and cells so that all of it keeps the budget: *out_plan is the
 * plan `base`, of which chain, grid and order are known, with them. -ENOMEM with the amount that
 * would do; *out_plan is as it was then. */
int pb_plan_fit(const struct pb_plan *base, const struct pb_plan_request *request,
                struct pb_err *err, struct pb_plan *out_plan);
/* The least memory that a plan on that base takes, whatever the budget. */
uint64_t pb_plan_least_bytes(const struct pb_plan *base, const struct pb_plan_request *request);
/* Bytes of slots and scratch of a plan of which chain, grid and slot format are known. */
void pb_plan_size_slots(struct pb_plan *plan);
#endif
