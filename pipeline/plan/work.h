/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_WORK_H
#define PB_PLAN_WORK_H
/* Work of a plan: the bands that are read, the compiled chain, and whole images of earlier passes.
 */
#include "pipeline/plan/plan.h"

/* limits.max_pixels, max_side_px and max_growth for the grids that are derived from a scene: their
 * size depends on the scene's place and pixel size, for which a file may declare
 * any values. Steps are checked against them while the chain is compiled (pb_builder_add_grid).
 * Thread: any. */

/* Grids of up to that many pixels may be made of any scene: a small one may overlap several tiles
 * of 10980 x 10980. */
#define PB_GROWTH_FREE_PX UINT64_C(500000000)

struct pb_grid_limits pb_plan_grid_limits(const struct pb_plan_request *request);
/* output.limit if n tiles of `pixels` pixels in all are more than the scene may grow to. */
int pb_plan_tiles_fit(const struct pb_plan_request *request, size_t n, uint64_t pixels,
                      struct pb_err *err);

/* The part of the plan that handles band names: the file's bands, the bands that steps make, the
 * bands that products use; compiles the chain. Fills plan->chain, source, n_sources, output_names,
 * n_outputs, and earlier with the same members of the earlier passes. */
int pb_plan_bands(struct pb_plan *plan, const struct pb_plan_request *request, struct pb_err *err);

/* Largest memory that a pass needs to make its images; 0 = no images; UINT64_MAX = impossible. */
uint64_t pb_plan_image_bytes(const struct pb_plan *pass);
#endif
