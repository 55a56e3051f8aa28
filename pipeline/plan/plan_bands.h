/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_BANDS_H
#define PB_PLAN_BANDS_H
/* The part of the plan that handles band names: the file's bands, the bands that steps make, the
 * bands that products use; compiles the chain. Fills plan->chain, source, n_sources, output_names,
 * n_outputs, and earlier with the same members of the earlier passes. */
struct pb_plan;
struct pb_plan_request;
struct pb_err;

int pb_plan_bands(struct pb_plan *plan, const struct pb_plan_request *request, struct pb_err *err);
#endif
