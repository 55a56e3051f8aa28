/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_REFUSE_H
#define PB_PLAN_REFUSE_H
/* Error messages for a plan that exceeds every budget, or the configured one. */
#include "pipeline/plan/plan.h"

/* Shortage of the plan that needs the least memory. */
struct pb_plan_shortage {
    uint64_t needed_bytes;     /* in all; UINT64_MAX: no memory is enough */
    uint64_t slots_bytes;      /* for slots */
    uint64_t slots_most_bytes; /* limit of managed slots, if they exceed it; else 0 */
};

/* Fills *err and returns its errno. */
int pb_plan_refuse(const struct pb_plan *plan, const struct pb_plan_request *request,
                   const struct pb_plan_shortage *of, struct pb_err *err);
#endif
