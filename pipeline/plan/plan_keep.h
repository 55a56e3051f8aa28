/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_KEEP_H
#define PB_PLAN_KEEP_H
/* Decides if the tiles of a pass stay in memory from round to round. */
#include "pipeline/plan/plan.h"

/* For a plan within the budget: sets kept_bytes, and adds them to total_bytes. */
void pb_plan_keep(struct pb_plan *plan, uint64_t budget);
#endif
