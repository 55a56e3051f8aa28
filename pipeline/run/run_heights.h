/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_HEIGHTS_H
#define PB_RUN_HEIGHTS_H
/* Facts of the heights of the ground for a plan: the range of their values in the area of the
 * scene. The area is known when the plan's grid is; therefore a range is read when a plan lacks it,
 * and the plan is made again. Thread: one at a time. */
#include "pipeline/plan/plan.h"

/* Plans, and adds the ranges that the plan needs to request->heights, which may have ranges of the
 * same files from earlier plans. Errors of pb_plan_create, and of reading the heights. */
int pb_run_heights_plan(const struct pb_plan_request *request, struct pb_err *err,
                        struct pb_plan **out);
/* Reads the range that the last plan of the request lacks, and adds it to request->heights; a known
 * range in it is not read again. plan.memory, memory, or an error of reading. */
int pb_run_heights_read(const struct pb_plan_request *request, struct pb_err *err);
void pb_run_heights_fini(struct pb_plan_heights *heights);
#endif
