/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_DESCRIBE_H
#define PB_PLAN_DESCRIBE_H
/* A plan in words. Thread: any. */
#include "pipeline/plan/plan.h"

/* Formats a reason, with the amount that would be enough unless it is 0. Thread: any. */
void pb_plan_reason(const char *why, uint64_t would_do, char *text, size_t bytes);
/* Describes the plan in a few lines. Returns the length, like snprintf. */
int pb_plan_describe(const struct pb_plan *plan, char *text, size_t bytes);
#endif
