/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_refuse.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "kernels/areas/areas.h"

#include <stdio.h>

static uint64_t mib(uint64_t bytes)
{
    return (bytes >> 20) + (bytes % (1u << 20) != 0);
}

int pb_plan_refuse(const struct pb_plan *plan, const struct pb_plan_request *r,
                   const struct pb_plan_shortage *of, struct pb_err *err)
{
    uint64_t decoded = plan->layout.decoding.cells_bytes + plan->layout.decoding.cache_bytes +
                       plan->layout.decoding.reader_bytes;
    if (plan->memory.image_bytes == UINT64_MAX)
        return pb_fail(err, PB_E_PIPELINE_GRID,
                       "pipeline %s cannot sieve an image of %d x %d: with cells of %d px more "
                       "than %u pixels are at their borders, the limit for areas there; crop the "
                       "image, or sieve a coarser one",
                       r->pipeline->name, plan->layout.grid.image_w, plan->layout.grid.image_h,
                       pb_areas_side(plan->layout.grid.side_px), UINT32_MAX);
    if (of->needed_bytes == UINT64_MAX)
        return pb_fail(err, PB_E_PLAN_MEMORY,
                       "no compute.memory is enough for the products of pipeline %s on this scene "
                       "(%d x %d): lower the blocksize of its cogs, or name fewer bands in them",
                       r->pipeline->name, r->info->width, r->info->height);
    if (of->slots_most_bytes > 0)
        return pb_fail(err, PB_E_MEMORY,
                       "compute.buffers is managed, but the slots for tiles of %d px take %llu MiB "
                       "and managed ones may take %llu: set compute.buffers to pinned, or a "
                       "smaller compute.tile",
                       plan->layout.grid.side_px, (unsigned long long)mib(of->slots_bytes),
                       (unsigned long long)mib(of->slots_most_bytes));
    if (of->needed_bytes > plan->memory.total_bytes)
        return pb_fail(err, PB_E_PLAN_MEMORY,
                       "compute.memory is %llu MiB, but this scene (%d x %d, blocks of %d x %d) "
                       "needs at least %llu MiB: %llu for products, %llu for the pass before, "
                       "which %s the image",
                       (unsigned long long)(r->config->compute.memory_bytes >> 20), r->info->width,
                       r->info->height, r->info->block_w, r->info->block_h,
                       (unsigned long long)mib(of->needed_bytes),
                       (unsigned long long)mib(plan->memory.product_bytes),
                       (unsigned long long)mib(plan->memory.reserve_bytes),
                       plan->work.n_images > 0 ? "reduces or sieves" : "reduces");
    char reductions[60] = "", areas[60] = "";
    if (plan->memory.reduce_bytes > 0)
        (void)snprintf(reductions, sizeof reductions, "%llu for reductions, ",
                       (unsigned long long)mib(plan->memory.reduce_bytes));
    if (plan->memory.image_bytes > 0)
        (void)snprintf(areas, sizeof areas, "%llu for the areas that are sieved, ",
                       (unsigned long long)mib(plan->memory.image_bytes));
    return pb_fail(
        err, PB_E_PLAN_MEMORY,
        "compute.memory is %llu MiB, but this scene (%d x %d, blocks of %d x %d) needs "
        "at least %llu MiB: %llu for decoded blocks, %llu for products, %s%s%llu for "
        "tiles of %d px",
        (unsigned long long)(r->config->compute.memory_bytes >> 20), r->info->width,
        r->info->height, r->info->block_w, r->info->block_h,
        (unsigned long long)mib(plan->memory.total_bytes), (unsigned long long)mib(decoded),
        (unsigned long long)mib(plan->memory.product_bytes), reductions, areas,
        (unsigned long long)mib(plan->memory.total_bytes - decoded - plan->memory.product_bytes -
                                plan->memory.reduce_bytes - plan->memory.image_bytes),
        plan->layout.grid.side_px);
}
