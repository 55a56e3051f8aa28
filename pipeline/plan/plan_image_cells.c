/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_images.h"

uint64_t pb_plan_image_cells(const struct pb_plan *pass)
{
    const uint64_t side = (uint64_t)pb_areas_side(pass->layout.grid.side_px);
    return (((uint64_t)pass->layout.grid.image_w + side - 1) / side) *
           (((uint64_t)pass->layout.grid.image_h + side - 1) / side);
}

uint64_t pb_plan_image_steps(const struct pb_plan *plan)
{
    const struct pb_chain_image *images;
    uint64_t n = 0;
    for (size_t i = 0; i < plan->n_earlier; i++)
        n += PB_AREAS_LATER_ROUNDS * pb_chain_images(plan->earlier[i]->work.chain, &images) *
             pb_plan_image_cells(plan->earlier[i]);
    return n;
}
