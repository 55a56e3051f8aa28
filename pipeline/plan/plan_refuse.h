/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_REFUSE_H
#define PB_PLAN_REFUSE_H
/* The words for a plan that no budget, or not this one, is enough for. */
#include "pipeline/plan/plan.h"

/* What the plan that takes the least memory lacks. */
struct pb_plan_shortage {
    uint64_t needed_bytes;     /* in all; UINT64_MAX: no memory is enough */
    uint64_t slots_bytes;      /* for slots */
    uint64_t slots_most_bytes; /* managed slots may take that and take more; 0: they do not */
};

/* Fills *err and returns its errno. */
int pb_plan_refuse(const struct pb_plan *plan, const struct pb_plan_request *request,
                   const struct pb_plan_shortage *of, struct pb_err *err);
#endif
