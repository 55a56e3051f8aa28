/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_images.h"
#include "pipeline/images/image_store.h"

#include <stdlib.h>

int pb_plan_images(struct pb_plan *plan, size_t first, struct pb_err *err)
{
    const struct pb_chain_image *of;
    size_t n = pb_chain_images(plan->work.chain, &of);
    if (n == 0)
        return 0;
    plan->work.images = calloc(n, sizeof *plan->work.images);
    if (plan->work.images == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    plan->work.n_images = n;
    for (size_t i = 0; i < n; i++) {
        const struct pb_raster_made made = {
            .width = of[i].grid.w, .height = of[i].grid.h, .n_bands = 1, .type = PB_F32};
        pb_raster_made_info(&made, &plan->work.images[i].info);
        plan->work.images[i].file = (uint32_t)(first + i);
    }
    return 0;
}

uint64_t pb_plan_image_bytes(const struct pb_plan *pass)
{
    const struct pb_grid *g = &pass->layout.grid;
    const struct pb_chain_image *images;
    const uint64_t n = pass->is_earlier ? pb_chain_images(pass->work.chain, &images) : 0;
    const int32_t side = pb_areas_side(g->side_px);
    const uint64_t table = pb_areas_bytes(g->image_w, g->image_h, side);
    const uint64_t thread = pb_areas_scratch_bytes(g->image_w, g->image_h, side) +
                            (uint64_t)side * (uint64_t)side * sizeof(float);
    if (n == 0)
        return 0;
    if (table == UINT64_MAX)
        return UINT64_MAX;
    return n * (table + pb_image_store_bytes(pb_plan_image_cells(pass))) +
           pb_plan_sink_workers(pass) * thread;
}
