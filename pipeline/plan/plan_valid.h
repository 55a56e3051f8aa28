/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_VALID_H
#define PB_PLAN_VALID_H
/* Messages for the user about the validity of pixels. Thread: any. */
struct pb_plan;
struct pb_plan_request;

/* Fills plan->valid: the source of the validity of the scene's pixels, and notes on declarations in
 * a file that are not used: an alpha band that is read as data, nodata values that the type cannot
 * hold, declarations that input.valid excludes, an alpha band that is not of uint8. */
void pb_plan_valid(struct pb_plan *plan, const struct pb_plan_request *request);
#endif
