/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Pure arithmetic over the config and the image header. Two questions decide the shape of a run:
 *
 *  - the visiting order. A file tiled on powers of two is visited along a Z curve: every block is
 * decoded once, and what waits for its neighbours (pyramid blocks) does not grow with the image.
 * Everything else, and chains with a halo, is visited by rows of tiles, each row by one reader,
 * with a block cache that holds the row: so a strip that runs through many tiles is decoded once as
 * well.
 *  - the side of a tile. As small as the products' blocks allow (small tiles keep the caches and
 * the budget happy), but no smaller than the file's blocks, and larger on a GPU, where a transfer
 * wants some hundred kilobytes.
 */
#include "pipeline/plan.h"
#include "pipeline/device.h"
#include "pipeline/plan_bands.h"

#include "wic/wic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_CPU = 512, SIDE_CUDA = 1024, PLANE_ALIGN = 256 };

static size_t align_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static bool is_power_of_two(int32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

struct pb_slot_layout pb_plan_layout(const struct pb_plan *plan, const struct pb_rect *read)
{
    struct pb_slot_layout layout = {0};
    size_t w = (size_t)read->w, h = (size_t)read->h;
    layout.row_bytes = w * pb_type_bytes(plan->type);
    layout.plane_bytes = align_up(layout.row_bytes * h, PLANE_ALIGN);
    layout.bytes = layout.plane_bytes * plan->n_bands;
    if (plan->has_mask) {
        layout.mask_offset = layout.bytes;
        layout.bytes += align_up(w * h, PLANE_ALIGN);
    }
    return layout;
}

/* Largest block of the pipeline's COGs: tiles are a multiple of it. */
static int32_t product_block(const struct pb_pipeline_config *pipeline)
{
    int32_t block = 64;
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *p = &pipeline->products[i];
        if (p->kind == PB_PRODUCT_COG && p->u.cog.blocksize > block)
            block = p->u.cog.blocksize;
    }
    return block;
}

static int32_t choose_side(const struct pb_plan_request *r)
{
    int32_t least = product_block(r->pipeline);
    int32_t side = r->config->compute.tile_px;
    if (side == 0) {
        side = r->cuda ? SIDE_CUDA : SIDE_CPU;
        int32_t block = r->info->block_w > r->info->block_h ? r->info->block_w : r->info->block_h;
        if (is_power_of_two(r->info->block_w) && is_power_of_two(r->info->block_h) &&
            block <= 4096 && block > side)
            side = block;
    }
    return side > least ? side : least;
}

static enum pb_order choose_order(const struct pb_plan *plan, const struct pb_raster_info *info)
{
    bool aligned = is_power_of_two(info->block_w) && is_power_of_two(info->block_h) &&
                   info->block_w <= 2 * plan->grid.side_px &&
                   info->block_h <= 2 * plan->grid.side_px;
    return aligned && plan->halo == 0 ? PB_ORDER_Z : PB_ORDER_ROWS;
}

/* What one reader's part of the block cache must hold so that nothing is decoded twice. */
static uint64_t reader_cache(const struct pb_plan *plan, const struct pb_raster_info *info)
{
    uint64_t bands = info->pixel_interleaved ? (uint64_t)info->n_bands : plan->n_bands;
    uint64_t column = (uint64_t)info->block_h * pb_type_bytes(info->type) * bands;
    uint64_t block = column * (uint64_t)info->block_w;
    int32_t reach = plan->grid.side_px + 2 * plan->halo;
    if (plan->order == PB_ORDER_Z) {
        uint64_t across = (uint64_t)(reach + info->block_w - 1) / (uint64_t)info->block_w + 1;
        uint64_t down = (uint64_t)(reach + info->block_h - 1) / (uint64_t)info->block_h + 1;
        return across * down * block;
    }
    if (reach > info->height)
        reach = info->height;
    uint64_t rows = (uint64_t)(reach + info->block_h - 1) / (uint64_t)info->block_h + 1;
    uint64_t blocks_down =
        ((uint64_t)info->height + (uint64_t)info->block_h - 1) / (uint64_t)info->block_h;
    if (rows > blocks_down)
        rows = blocks_down;
    uint64_t across =
        ((uint64_t)info->width + (uint64_t)info->block_w - 1) / (uint64_t)info->block_w;
    return rows * across * block;
}

static void slot_sizes(struct pb_plan *plan)
{
    int32_t w = plan->grid.side_px + 2 * plan->halo;
    int32_t h = w;
    if (w > plan->grid.image_w)
        w = plan->grid.image_w;
    if (h > plan->grid.image_h)
        h = plan->grid.image_h;
    struct pb_rect most = {0, 0, w, h};
    plan->in_slot_bytes = pb_plan_layout(plan, &most).bytes;
    int32_t cw = plan->grid.side_px < plan->grid.image_w ? plan->grid.side_px : plan->grid.image_w;
    int32_t ch = plan->grid.side_px < plan->grid.image_h ? plan->grid.side_px : plan->grid.image_h;
    plan->out_slot_bytes =
        align_up((size_t)cw * (size_t)ch * sizeof(float), PLANE_ALIGN) * plan->n_outputs;
    plan->scratch_bytes = pb_chain_scratch_bytes(plan->chain, cw, ch);
}

static int add_up(struct pb_plan *plan, const struct pb_plan_request *r, uint64_t cache_each)
{
    struct pb_product_env env;
    pb_plan_product_env(plan, r, &env);
    plan->product_bytes = 0;
    for (size_t i = 0; i < r->pipeline->n_products; i++) {
        const struct pb_product_config *p = &r->pipeline->products[i];
        const struct pb_product_type *type = pb_product_type(p->kind);
        if (type->bytes != NULL)
            plan->product_bytes += type->bytes(&env, p);
    }
    plan->cache_bytes = cache_each * plan->readers;
    plan->total_bytes = plan->product_bytes + plan->cache_bytes +
                        (uint64_t)plan->in_slots * wic_slot_stride(plan->in_slot_bytes) +
                        (uint64_t)plan->out_slots * wic_slot_stride(plan->out_slot_bytes) +
                        (plan->cuda ? 0 : (uint64_t)plan->workers * plan->scratch_bytes);
    return plan->total_bytes <= r->config->compute.memory_bytes ? 0 : -ENOMEM;
}

/* Threads and slots for `n` threads a stage. */
static void set_threads(struct pb_plan *plan, uint32_t n)
{
    uint32_t tiles = pb_grid_count(&plan->grid);
    if (n > tiles)
        n = tiles;
    plan->readers = n;
    plan->workers = plan->cuda ? 4 : n; /* on a GPU: streams */
    plan->writers = n;
    plan->in_slots = plan->readers + plan->workers + 1;
    plan->out_slots = plan->workers + plan->writers + 1;
    plan->window_units = n + 2;
    if (plan->order == PB_ORDER_Z)
        plan->window_units = (plan->in_slots + plan->out_slots + 3) / 4 + 2 * n;
}

/* As many threads as the budget carries: fewer readers and slots are slower, never wrong. */
static int fit_budget(struct pb_plan *plan, const struct pb_plan_request *r, struct pb_err *err)
{
    uint32_t n =
        r->config->compute.threads > 0 ? (uint32_t)r->config->compute.threads : pb_device_cores();
    uint64_t cache_each = reader_cache(plan, r->info);
    for (;; n--) {
        set_threads(plan, n);
        if (add_up(plan, r, cache_each) == 0)
            return 0;
        if (n <= 1)
            break;
    }
    uint64_t mib = 1024 * 1024;
    return pb_fail(
        err, PB_E_PLAN_MEMORY,
        "compute.memory is %llu MiB, but this scene (%d x %d, blocks of %d x %d) needs at least "
        "%llu MiB: "
        "%llu for decoded blocks, %llu for products, %llu for tiles of %d px",
        (unsigned long long)(r->config->compute.memory_bytes / mib), r->info->width,
        r->info->height, r->info->block_w, r->info->block_h,
        (unsigned long long)(plan->total_bytes / mib + 1),
        (unsigned long long)(plan->cache_bytes / mib),
        (unsigned long long)(plan->product_bytes / mib),
        (unsigned long long)((plan->total_bytes - plan->cache_bytes - plan->product_bytes) / mib),
        plan->grid.side_px);
}

static enum pb_mem_kind choose_mem(const struct pb_plan_request *r)
{
    if (!r->cuda || r->config->compute.buffers == PB_BUFFERS_HOST)
        return PB_MEM_HOST;
    return r->config->compute.buffers == PB_BUFFERS_MANAGED ? PB_MEM_MANAGED : PB_MEM_PINNED;
}

int pb_plan_create(const struct pb_plan_request *request, struct pb_err *err,
                   struct pb_plan **out_plan)
{
    struct pb_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    plan->type = request->info->type;
    plan->has_mask = request->info->has_mask;
    plan->cuda = request->cuda;
    plan->device_index = request->device_index;
    plan->mem = choose_mem(request);
    int rc = pb_plan_bands(plan, request->pipeline, request->info, err);
    if (rc < 0)
        goto out;
    plan->halo = pb_chain_halo(plan->chain);
    rc = pb_grid_init(&plan->grid, request->info->width, request->info->height,
                      choose_side(request));
    if (rc < 0) {
        rc = pb_fail(err, PB_E_INPUT_DAMAGED, "the image is empty (%d x %d)", request->info->width,
                     request->info->height);
        goto out;
    }
    plan->order = choose_order(plan, request->info);
    slot_sizes(plan);
    rc = fit_budget(plan, request, err);
out:
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
    pb_chain_destroy(plan->chain);
    for (size_t i = 0; i < plan->n_outputs; i++)
        free(plan->output_names[i]);
    free(plan->output_names);
    free(plan);
}

void pb_plan_product_env(const struct pb_plan *plan, const struct pb_plan_request *request,
                         struct pb_product_env *out_env)
{
    *out_env = (struct pb_product_env){
        .config = request->config,
        .pipeline = request->pipeline,
        .info = request->info,
        .grid = &plan->grid,
        .order = plan->order,
        .tiles_in_flight = plan->window_units * pb_order_unit_max(&plan->grid, plan->order),
        .workers = plan->writers,
        .band_names = (const char *const *)plan->output_names,
        .n_bands = plan->n_outputs,
        .n_default = plan->n_default,
    };
}

int pb_plan_describe(const struct pb_plan *plan, char *text, size_t bytes)
{
    static const char *const mem[] = {"host", "pinned", "managed"};
    const double mib = 1024.0 * 1024.0;
    return snprintf(text, bytes,
                    "tiles      %u of %d x %d px, halo %d, visited %s\n"
                    "chain      %zu of the file's bands in, %zu out, %zu instructions\n"
                    "threads    %u reading, %u %s, %u writing\n"
                    "memory     %.0f MiB: slots %u x %.1f in, %u x %.1f out (%s), block cache "
                    "%.0f, products %.0f\n",
                    pb_grid_count(&plan->grid), plan->grid.side_px, plan->grid.side_px, plan->halo,
                    plan->order == PB_ORDER_Z ? "along a Z curve" : "by rows", plan->n_bands,
                    plan->n_outputs, pb_chain_instruction_count(plan->chain), plan->readers,
                    plan->workers, plan->cuda ? "CUDA streams" : "computing", plan->writers,
                    (double)plan->total_bytes / mib, plan->in_slots,
                    (double)plan->in_slot_bytes / mib, plan->out_slots,
                    (double)plan->out_slot_bytes / mib, mem[plan->mem],
                    (double)plan->cache_bytes / mib, (double)plan->product_bytes / mib);
}
