/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A file tiled on powers of two is visited along a Z curve: the number of incomplete pyramid blocks
 * does not grow with the image. Everything else, and chains with a halo, is visited by rows of
 * tiles, within stripes when rows are long: pixels that neighbours share are used again soon.
 *
 * A COG's compressed blocks are in the file row by row. If visited by whole rows, each block has
 * its position when it is made; else most of them have to wait in a temporary file and are written
 * twice. The incomplete overviews of a whole row need as much memory as a row of blocks of float32
 * planes. Whole rows are used for images of a usual width, and within half of the budget: the
 * memory of a run must not grow with the scene without limit, and with many bands whole rows save
 * nothing (20 bands of 5490 x 5490 px: 13.4 CPU s and 401 MB by rows, 12.7 and 261 along the
 * curve). A GPU's tiles are larger than blocks, so half of its blocks would wait anyway: its order
 * does not change. */
#include "pipeline/plan/plan_order.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/product/product.h"

enum { ROWS_W_MAX = 32768, WAITS_TILES_LEAST = 16 };

static bool is_power_of_two(int32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

enum pb_order pb_plan_order(const struct pb_plan *plan, const struct pb_raster_info *info)
{
    bool aligned = is_power_of_two(info->block_w) && is_power_of_two(info->block_h) &&
                   info->block_w <= 2 * plan->layout.grid.side_px &&
                   info->block_h <= 2 * plan->layout.grid.side_px;
    bool apart = pb_chain_keeps_grid(plan->work.chain) && plan->work.halo == 0;
    return aligned && apart ? PB_ORDER_Z : PB_ORDER_ROWS;
}

static bool wants_rows(const struct pb_pipeline_config *pipeline)
{
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_type *type = pb_product_type(pipeline->products[i]->kind);
        if (type->wants_rows != NULL && type->wants_rows(pipeline->products[i]))
            return true;
    }
    return false;
}

bool pb_plan_by_whole_rows(struct pb_plan *plan, const struct pb_plan_request *request)
{
    if (plan->is_earlier || plan->engine.cuda || plan->layout.grid.image_w > ROWS_W_MAX ||
        pb_grid_count(&plan->layout.grid) < WAITS_TILES_LEAST || !wants_rows(request->pipeline))
        return false;
    plan->layout.order = PB_ORDER_ROWS;
    plan->layout.whole_rows = true;
    return true;
}

bool pb_plan_prefers_rows(const struct pb_plan *rows, const struct pb_plan *other,
                          const struct pb_plan_request *request)
{
    uint64_t budget = request->config->compute.memory_bytes;
    return rows->layout.price <= other->layout.price &&
           rows->layout.writers >= other->layout.writers && rows->memory.total_bytes <= budget / 2;
}
