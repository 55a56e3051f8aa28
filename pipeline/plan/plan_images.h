/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_IMAGES_H
#define PB_PLAN_IMAGES_H
/* Whole images that earlier passes make (pb_chain_images), as sources of the plan. */
#include "pipeline/plan/plan.h"

/* Sets plan->images of the compiled chain; the first one is source `first`. */
int pb_plan_images(struct pb_plan *plan, size_t first, struct pb_err *err);
/* Cells of an image that the pass makes. */
uint64_t pb_plan_image_cells(const struct pb_plan *pass);
/* Cells that passes of the whole plan sieve when their tiles have come, each counted in every
 * round. */
uint64_t pb_plan_image_steps(const struct pb_plan *plan);
/* What a pass needs to make its images, at most; 0: it makes none. UINT64_MAX: it cannot. */
uint64_t pb_plan_image_bytes(const struct pb_plan *pass);
#endif
