/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_IMAGES_H
#define PB_PLAN_IMAGES_H
/* Whole images that earlier passes make (pb_chain_images), as sources of the plan. */
#include "pipeline/plan/plan.h"

/* Sets plan->images for the compiled chain; the first image is source `first`. */
int pb_plan_images(struct pb_plan *plan, size_t first, struct pb_err *err);
/* Count of the cells of an image that the pass makes. */
uint64_t pb_plan_image_cells(const struct pb_plan *pass);
/* Count of the cells that passes of the whole plan sieve after their tiles have arrived, each
 * counted once a round. */
uint64_t pb_plan_image_steps(const struct pb_plan *plan);
/* Largest memory that a pass needs to make its images; 0 = no images; UINT64_MAX = impossible. */
uint64_t pb_plan_image_bytes(const struct pb_plan *pass);
#endif
