/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Chooses the side of the tiles. As small as the products' blocks allow (small tiles fit into
 * caches and need little memory), but no smaller than the file's blocks, and larger on a GPU, where
 * a transfer needs some hundred kilobytes to be fast. And large enough that a scene has TILES_MAX
 * tiles at most, because the memory per tile in plans and runs must not grow with the scene without
 * limit. */
#include "pipeline/device/device.h"
#include "pipeline/plan/choose.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/exchange.h"
#include "pipeline/plan/layout.h"
#include "pipeline/plan/memory.h"
#include "pipeline/plan/staged.h"
#include "pipeline/plan/ways.h"
#include "pipeline/plan/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_CPU = 512, SIDE_CUDA = 1024, SIDE_MAX = 8192, TILES_MAX = 1 << 22 };

/* Largest block of the pipeline's products: tiles are a multiple of it. */
static int32_t product_block(const struct pb_pipeline_config *pipeline)
{
    int32_t block = 64;
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_type *type = pb_product_type(pipeline->products[i]->kind);
        int32_t own = type->block_px ? type->block_px(pipeline->products[i]) : 0;
        block = own > block ? own : block;
    }
    return block;
}

static int64_t count_tiles(const struct pb_plan *plan, int32_t side)
{
    int64_t cols = ((int64_t)plan->work.geometry.w + side - 1) / side;
    return cols * (((int64_t)plan->work.geometry.h + side - 1) / side);
}

static int32_t choose_side(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    int32_t least = product_block(r->pipeline);
    int32_t side =
        pb_plan_gate_side(plan) > 0 ? pb_plan_gate_side(plan) : r->config->compute.tile_px;
    if (side == 0) {
        /* With a gate small tiles are better, because more of them are left out. */
        side = plan->engine.cuda && pb_chain_gate(plan->work.chain) == NULL ? SIDE_CUDA : SIDE_CPU;
        int32_t block = r->info->block_w > r->info->block_h ? r->info->block_w : r->info->block_h;
        if (!r->info->is_growing && /* its strips are not read as blocks */
            pb_is_power_of_two(r->info->block_w) && pb_is_power_of_two(r->info->block_h) &&
            block <= 4096 && block > side)
            side = block;
    }
    side = side > least ? side : least;
    while (side < SIDE_MAX && count_tiles(plan, side) > TILES_MAX)
        side *= 2;
    return side;
}

/* True if a GPU can compute tiles of that side. */
static bool fits_gpu(const struct pb_plan *plan, int32_t side)
{
    const struct pb_geometry *g = &plan->work.geometry;
    return pb_chain_plane_px(plan->work.chain, side < g->w ? side : g->w,
                             side < g->h ? side : g->h) <= INT32_MAX;
}

/* True if the side is not configured, and no product depends on it. */
static bool may_shrink(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    return r->config->compute.tile_px == 0 && pb_plan_gate_side(plan) == 0;
}

/* Side for the device: a GPU may need smaller tiles. 0: it cannot compute them at any side. */
static int32_t choose_device_side(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    int32_t side = choose_side(plan, r), least = product_block(r->pipeline);
    while (!fits_gpu(plan, side) && may_shrink(plan, r) && side / 2 >= least &&
           count_tiles(plan, side / 2) <= TILES_MAX)
        side /= 2;
    return fits_gpu(plan, side) ? side : 0;
}

static enum pb_mem_kind choose_mem(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    return plan->engine.cuda && r->config->compute.buffers != PB_BUFFERS_HOST ? PB_MEM_PINNED
                                                                              : PB_MEM_HOST;
}

int pb_plan_with_side(const struct pb_plan *base, const struct pb_plan_request *r, int32_t side,
                      struct pb_err *err, struct pb_plan *out_plan)
{
    struct pb_plan plan = *base;
    if (pb_grid_init(&plan.layout.grid, plan.work.geometry.w, plan.work.geometry.h, side) < 0)
        return pb_fail(err, PB_E_INPUT_DAMAGED,
                       "the image is empty, or too large to be cut into tiles (%d x %d px)",
                       plan.work.geometry.w, plan.work.geometry.h);
    plan.layout.order = pb_plan_order(&plan, r->info);
    plan.layout.format = pb_plan_slot_format(&plan);
    pb_plan_gate_set(&plan);
    pb_plan_sums_set(&plan);
    plan.layout.lines = pb_plan_lines(&plan);
    pb_plan_whole_set(&plan, r);
    if (plan.engine.whole.keeps && pb_plan_whole_widen(&plan, r))
        plan.layout.format = pb_plan_slot_format(&plan);
    if (plan.engine.whole.used) {
        plan.layout.order = PB_ORDER_ROWS;
        plan.layout.whole_rows = true;
    }
    pb_plan_out(&plan, r);
    if (pb_plan_whole_is_vain(&plan, r)) {
        struct pb_plan host = *base;
        host.engine.whole.why_not = plan.engine.whole.host_why;
        return pb_plan_with_side(&host, r, side, err, out_plan);
    }
    plan.engine.resident = pb_plan_resident(&plan, r);
    plan.layout.format.line_px = plan.engine.resident.by_line ? plan.engine.resident.part_w : 0;
    if (plan.layout.sums.chain.n > 0)
        plan.layout.format.head_bytes = (uint32_t)pb_slot_align(
            sizeof(struct pb_slot_head) + plan.layout.sums.chain.n_numbers * sizeof(float),
            PB_PLANE_ALIGN);
    *out_plan = plan;
    return 0;
}

/* Half the side, if none is configured: small tiles cost a little speed, a refusal costs the
 * scene. 0: not possible. */
static int32_t smaller_side(const struct pb_plan *base, const struct pb_plan_request *r,
                            int32_t side)
{
    bool may = may_shrink(base, r) && side / 2 >= product_block(r->pipeline) &&
               count_tiles(base, side / 2) <= TILES_MAX;
    return may ? side / 2 : 0;
}

/* Makes the plan for a side again, without managed planes if these are chosen and not needed, or
 * else with blocks that the host decodes, after *sided has exceeded compute.memory. */
static int side_again(const struct pb_plan *base, const struct pb_plan_request *r, int32_t side,
                      struct pb_err *err, struct pb_plan *sided)
{
    const bool managed = sided->engine.whole.managed;
    struct pb_plan other = *base, fitted;
    const uint64_t least = pb_plan_least_bytes(sided, r);
    const char *why =
        pb_limit_reason(managed ? PB_LIMIT_DECODER_HOST_PLANES : PB_LIMIT_DECODER_SLOTS);
    if (managed && sided->engine.whole.managed_why == NULL) {
        other.engine.whole.managed_why = why;
        if (pb_plan_with_side(&other, r, side, err, sided) == 0 && sided->engine.whole.used &&
            pb_plan_fit(sided, r, NULL, &fitted) == 0)
            return 0;
    }
    other.engine.whole.why_not = why;
    other.engine.whole.why_bytes = least;
    return pb_plan_with_side(&other, r, side, err, sided);
}

/* Makes the plan for a side, by whole rows of tiles if that is better. *least: the smallest need
 * among sides that did not fit, which *why reports. */
static int fit_side(const struct pb_plan *base, const struct pb_plan_request *r, int32_t side,
                    uint64_t *least, struct pb_err *why, struct pb_plan *out_plan)
{
    struct pb_err tried = {0};
    struct pb_plan sided, fitted, rows;
    int rc = pb_plan_with_side(base, r, side, &tried, &sided);
    if (rc == 0 && sided.engine.whole.used && pb_plan_fit(&sided, r, NULL, &fitted) < 0)
        rc = side_again(base, r, side, &tried, &sided);
    rc = rc ? rc : pb_plan_fit(&sided, r, sided.layout.lines > 0 ? NULL : &tried, &fitted);
    if (rc == -ENOMEM && sided.layout.lines > 0) {
        struct pb_plan whole = *base;
        whole.layout.no_strips = true;
        rc = pb_plan_with_side(&whole, r, side, &tried, &sided);
        rc = rc ? rc : pb_plan_fit(&sided, r, &tried, &fitted);
    }
    const uint64_t needs = rc == -ENOMEM ? pb_plan_least_bytes(&sided, r) : 0;
    if (rc < 0 && (why->code == PB_OK || needs < *least)) {
        *least = needs;
        *why = tried;
    }
    if (rc == 0 && pb_plan_by_whole_rows(&sided, r) && pb_plan_fit(&sided, r, NULL, &rows) == 0 &&
        pb_plan_prefers_rows(&rows, &fitted, r))
        fitted = rows;
    if (rc == 0)
        *out_plan = fitted;
    return rc;
}

/* Finds the largest side within the budget; a smaller one if a core would be idle and the
 * smaller one costs less. A refusal reports the side with the smallest need, which may not be the
 * smallest side: a large tile contains its first overviews. */
static int fit(const struct pb_plan *base, const struct pb_plan_request *r, int32_t side,
               struct pb_err *err, struct pb_plan *out_plan)
{
    struct pb_err why = {0};
    struct pb_plan best = {0}, fitted;
    uint64_t least = UINT64_MAX;
    int rc = -ENOMEM;
    while (side > 0 && (rc == -ENOMEM || best.memory.wanted_bytes > 0)) {
        int one = fit_side(base, r, side, &least, &why, &fitted);
        if (one == 0 && (rc < 0 || fitted.layout.price < best.layout.price))
            best = fitted;
        rc = rc < 0 ? one : rc;
        side = smaller_side(base, r, side);
    }
    if (rc == 0)
        *out_plan = best;
    else if (err != NULL && err->code == PB_OK)
        *err = why;
    return rc;
}

static void set_share(const struct pb_device_traits *traits, struct pb_plan_engine *engine)
{
    if (traits == NULL || traits->all_multiprocessors == 0)
        return;
    engine->share = traits->gpu.multiprocessors;
    engine->share_of = traits->all_multiprocessors;
    memcpy(engine->share_why, traits->share_why, sizeof engine->share_why);
}

int32_t pb_plan_begin(struct pb_plan *plan, const struct pb_plan_request *request)
{
    plan->engine.device_index = request->device_index;
    plan->work.priority = request->pipeline->priority;
    plan->engine.cuda = request->cuda;
    set_share(request->traits, &plan->engine);
    int32_t side = plan->engine.cuda ? choose_device_side(plan, request) : 0;
    const struct pb_engine_case facts = {.plan = plan, .request = request, .side = side};
    if (plan->engine.cuda)
        plan->engine.cpu_why = pb_engine_refuses(PB_ENGINE_GPU, &facts);
    if (plan->engine.cpu_why != NULL) {
        plan->engine.cuda = false;
        side = 0;
    }
    plan->layout.by_workers = !plan->engine.cuda && (!request->remote || request->cuda);
    plan->engine.mem = choose_mem(plan, request);
    return side > 0 ? side : choose_side(plan, request);
}

/* Largest side up to `side` with which the device decodes the scene, where larger ones need more
 * than its memory; else `side`. */
static int32_t side_of_bands(const struct pb_plan *base, const struct pb_plan_request *r,
                             int32_t side)
{
    const char *rows = pb_limit_reason(PB_LIMIT_DECODER_ROWS);
    struct pb_plan sided;
    for (int32_t own = side; own > 0; own = smaller_side(base, r, own)) {
        if (pb_plan_with_side(base, r, own, NULL, &sided) < 0)
            break;
        if (sided.engine.whole.used)
            return own;
        if (sided.engine.whole.why_not == NULL || strcmp(sided.engine.whole.why_not, rows) != 0)
            break;
    }
    return side;
}

/* Plans one pass, whose chain and sources are known. */
static int plan_pass(struct pb_plan *plan, const struct pb_plan_request *request,
                     struct pb_err *err)
{
    struct pb_plan base = *plan;
    const int32_t side = side_of_bands(&base, request, pb_plan_begin(&base, request));
    int rc = fit(&base, request, side, err, plan);
    if (rc == 0)
        pb_plan_keep(plan, request->config->compute.memory_bytes);
    return rc;
}

/* Least memory of an earlier pass in addition to the products. */
static uint64_t least_bytes(const struct pb_plan *pass, const struct pb_plan_request *request)
{
    struct pb_plan base = *pass, sided;
    uint64_t least = UINT64_MAX;
    for (int32_t side = pb_plan_begin(&base, request); side > 0;
         side = smaller_side(&base, request, side))
        if (pb_plan_with_side(&base, request, side, NULL, &sided) == 0) {
            uint64_t bytes = pb_plan_least_bytes(&sided, request);
            least = bytes < least ? bytes : least;
        }
    return least == UINT64_MAX ? 0 : least; /* the plan itself will fail */
}

/* The products are in memory while the earlier passes run: the last pass is chosen so that its
 * products leave room for them. */
static int plan_passes(struct pb_plan *plan, const struct pb_plan_request *request,
                       struct pb_err *err)
{
    for (size_t i = 0; i < plan->n_earlier; i++) {
        uint64_t least = least_bytes(plan->earlier[i], request);
        plan->memory.reserve_bytes =
            least > plan->memory.reserve_bytes ? least : plan->memory.reserve_bytes;
    }
    int rc = plan_pass(plan, request, err);
    for (size_t i = 0; i < plan->n_earlier && rc == 0; i++) {
        plan->earlier[i]->memory.held_bytes = plan->memory.product_bytes;
        rc = plan_pass(plan->earlier[i], request, err);
    }
    return rc;
}

/* Checks that the pattern suits the tiles of the pass that makes the products, or their parts in
 * every pass; else *err has the reason. */
static int check_exchange(struct pb_plan *plan, const struct pb_plan_request *request,
                          struct pb_err *err)
{
    struct pb_tile_exchange tiles;
    struct pb_part_exchange parts;
    plan->layout.exchange = request->pipeline->exchange;
    for (size_t i = 0; i < plan->n_earlier; i++)
        if (plan->layout.exchange.of == PB_EXCHANGE_PARTS)
            plan->earlier[i]->layout.exchange = plan->layout.exchange;
    int rc = pb_plan_exchange(plan, err, &tiles);
    rc = rc ? rc : pb_tile_exchange_check(&tiles, err);
    rc = rc ? rc : pb_plan_part_exchange(plan, err, &parts);
    return rc ? rc : pb_part_exchange_check(&parts, plan->layout.gate.chain != NULL, err);
}

/* Lets the request prepare the products on the plan's grid. */
static int prepare(struct pb_plan *plan, const struct pb_plan_request *request, struct pb_err *err)
{
    struct pb_product_env env;
    if (request->prepare == NULL)
        return 0;
    pb_plan_product_env(plan, request, &env);
    return request->prepare(request->user, &env, err, &plan->work.prepared);
}

int pb_plan_create(const struct pb_plan_request *request, struct pb_err *err,
                   struct pb_plan **out_plan)
{
    struct pb_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    int rc = pb_plan_bands(plan, request, err);
    rc = rc ? rc : prepare(plan, request, err);
    rc = rc ? rc : plan_passes(plan, request, err);
    rc = rc ? rc : check_exchange(plan, request, err);
    if (rc < 0) {
        pb_plan_destroy(plan);
        return rc;
    }
    *out_plan = plan;
    return 0;
}

void pb_plan_destroy(struct pb_plan *plan)
{
    if (plan == NULL)
        return;
    for (size_t i = 0; i < plan->n_earlier; i++)
        free(plan->earlier[i]);
    free(plan->earlier);
    pb_chain_destroy(plan->work.chain);
    pb_raster_close(plan->work.placed);
    pb_plan_ways_free(plan);
    free(plan->work.calibrated);
    free(plan->work.info);
    for (size_t i = 0; plan->work.outputs.names != NULL && i < plan->work.outputs.n; i++)
        free(plan->work.outputs.names[i]);
    free(plan->work.outputs.names);
    free(plan->work.outputs.bands);
    free(plan->work.outputs.tags);
    free(plan->work.outputs.kept);
    free(plan->work.wide);
    free(plan->work.floats);
    free(plan->work.outputs.rest);
    free(plan->work.outputs.rest_of);
    free(plan);
}
