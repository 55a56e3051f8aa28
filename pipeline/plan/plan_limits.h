/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_LIMITS_H
#define PB_PLAN_LIMITS_H
/* limits.max_pixels, max_side_px and max_growth for the grids that are made of a scene: where a
 * scene lies and how large its pixels are decides the size of these, and a file may declare
 * anything. Steps are held to them while the chain is compiled (pb_builder_add_grid). Thread: any.
 */
#include "pipeline/plan/plan.h"

/* Grids of up to so many pixels may be made of any scene: a small one may lie on several tiles of
 * 10980 x 10980. */
#define PB_GROWTH_FREE_PX UINT64_C(500000000)

struct pb_grid_limits pb_plan_grid_limits(const struct pb_plan_request *request);
/* output.limit when n tiles of so many pixels together are more than the scene may grow to. */
int pb_plan_tiles_fit(const struct pb_plan_request *request, size_t n, uint64_t pixels,
                      struct pb_err *err);
#endif
