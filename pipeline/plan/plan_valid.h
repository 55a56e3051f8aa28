/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_VALID_H
#define PB_PLAN_VALID_H
/* What decides which pixels are valid, in words for people. Thread: any. */
struct pb_plan;
struct pb_plan_request;

/* Fills plan->valid: by what pixels of the scene are valid, and notes on what a file declares and
 * is not used so: an alpha band that is read as data, nodata values that the type cannot hold, what
 * input.valid leaves out, an alpha band that is not of uint8. */
void pb_plan_valid(struct pb_plan *plan, const struct pb_plan_request *request);
#endif
