/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_LIMITS_H
#define PB_PLAN_LIMITS_H
/* limits.max_pixels, max_side_px and max_growth for the grids that are derived from a scene: their
 * size depends on the scene's place and pixel size, for which a file may declare
 * any values. Steps are checked against them while the chain is compiled (pb_builder_add_grid).
 * Thread: any.
 */
#include "pipeline/plan/plan.h"

/* Grids of up to that many pixels may be made of any scene: a small one may overlap several tiles
 * of 10980 x 10980. */
#define PB_GROWTH_FREE_PX UINT64_C(500000000)

struct pb_grid_limits pb_plan_grid_limits(const struct pb_plan_request *request);
/* output.limit if n tiles of `pixels` pixels in all are more than the scene may grow to. */
int pb_plan_tiles_fit(const struct pb_plan_request *request, size_t n, uint64_t pixels,
                      struct pb_err *err);
#endif
