/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_MEMORY_H
#define PB_PLAN_MEMORY_H
/* Memory of a pass: threads, stripes, slots and cells within the budget; tiles that stay in memory
 * from round to round; and the message of a budget that is too small. */
#include "pipeline/plan/plan.h"

/* Part of the message of plan.memory, which the service reads to leave the job to machines with as
 * much. */
#define PB_PLAN_NEEDS "needs at least %llu MiB"

/* Chooses threads, stripes, slots and cells within the budget: *out_plan is the
 * plan `base`, which has chain, grid and order, with these choices. -ENOMEM with the amount that
 * would be enough; *out_plan is unchanged then. */
int pb_plan_fit(const struct pb_plan *base, const struct pb_plan_request *request,
                struct pb_err *err, struct pb_plan *out_plan);
/* Least memory of a plan on that base, whatever the budget. */
uint64_t pb_plan_least_bytes(const struct pb_plan *base, const struct pb_plan_request *request);
/* Sets the bytes of slots and scratch in a plan that has chain, grid and slot format. */
void pb_plan_size_slots(struct pb_plan *plan);
/* MiB of an amount that is needed, rounded up: all texts of a plan agree. */
uint64_t pb_plan_mib(uint64_t bytes);
/* For a plan within the budget: sets kept_bytes, and adds them to total_bytes. */
void pb_plan_keep(struct pb_plan *plan, uint64_t budget);
#endif
