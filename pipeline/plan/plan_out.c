/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A product is made on the device if the device has an encoder for it, and enough memory. */
#include "pipeline/plan/plan_out.h"
#include "pipeline/plan/layout.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/engine.h"

#include "kernels/reduce/statistics_device.h"

#include <string.h>

#define ALIGN      256
#define SLOT_LEAST (UINT64_C(1) << 20)

enum { REDUCE_FLIGHTS = 64 }; /* most tiles in flight */

/* From the fastest to the one that needs the least memory. */
static const struct {
    uint32_t strips;
    uint64_t batch_bytes; /* raw blocks of a batch */
} sizes[PB_OUT_SIZES] = {{4, 48 << 20}, {2, 16 << 20}, {1, 1}};

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static uint32_t blocks(int32_t px, int32_t block_px)
{
    return (uint32_t)((px + block_px - 1) / block_px);
}

static int32_t halved(int32_t px, uint32_t level)
{
    return (int32_t)(((int64_t)px + (INT64_C(1) << level) - 1) >> level);
}

struct pb_encode_format pb_plan_out_format(const struct pb_plan_made *made, uint32_t layer)
{
    return layer == 0 ? made->blocks.format : pb_device_blocks_mask(&made->blocks);
}

bool pb_plan_out_makes(const struct pb_plan_made *made, uint32_t level)
{
    return !made->blocks.top_only || level == made->blocks.levels;
}

struct pb_out_level pb_plan_out_level(const struct pb_plan *plan, const struct pb_plan_made *made,
                                      uint32_t level)
{
    const struct pb_grid *g = &plan->layout.grid;
    const int32_t block_px = made->blocks.format.block_px;
    struct pb_out_level l = {.w = halved(g->image_w, level), .h = halved(g->image_h, level)};
    const int32_t rows = halved(g->side_px, level);
    l.rows = rows > block_px ? rows : block_px;
    l.row_px = (uint32_t)(aligned((uint64_t)l.w * sizeof(float)) / sizeof(float));
    l.plane_px = (uint64_t)l.row_px * (uint64_t)l.rows;
    return l;
}

bool pb_plan_out_has_planes(const struct pb_plan *plan)
{
    return plan->engine.out.host_planes != 0 || plan->is_earlier;
}

bool pb_plan_out_reduces(const struct pb_plan *plan, size_t i)
{
    return i < 64 && (plan->engine.out.reduced >> i & 1) != 0;
}

bool pb_plan_out_has_plane(const struct pb_plan *plan, uint32_t plane)
{
    return plane >= 64 || (plan->engine.out.host_planes >> plane & 1) != 0;
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Sets the sizes for a layer of a product's blocks. */
static void size_layer(struct pb_plan_out *out, struct pb_plan_made *made, uint32_t layer,
                       uint64_t batch_bytes)
{
    const struct pb_encode_format format = pb_plan_out_format(made, layer);
    struct pb_encode_needs needs = {.raw_bytes = 1};
    (void)pb_encode_measure(&format, 1, &needs);
    uint64_t slot = needs.raw_bytes > needs.out_bytes ? needs.raw_bytes : needs.out_bytes;
    uint64_t n = batch_bytes / needs.raw_bytes;
    n = n < 1 ? 1 : n < made->row_blocks ? n : made->row_blocks;
    made->batch[layer] = (uint32_t)n;
    (void)pb_encode_measure(&format, (uint32_t)n, &needs);
    out->batch_most = n > out->batch_most ? (uint32_t)n : out->batch_most;
    if (needs.bytes > out->workspace_bytes)
        out->workspace_bytes = needs.bytes;
    if (needs.out_bytes > out->encoded_bytes)
        out->encoded_bytes = needs.out_bytes;
    slot += PB_BLOCK_SLOT_HEAD;
    out->slot_bytes = slot > out->slot_bytes ? slot : out->slot_bytes;
}

/* Sets the sizes for batches of parts, which use the memory of encoded blocks. */
static void size_parts(const struct pb_plan *plan, struct pb_plan_out *out,
                       struct pb_plan_made *made, uint64_t batch_bytes)
{
    const uint64_t part = sizeof(struct pb_statistics_part), slot = part + PB_BLOCK_SLOT_HEAD;
    uint64_t n = batch_bytes / part;
    made->row_blocks = (uint32_t)plan->layout.grid.cols * made->blocks.format.n_bands;
    n = n < 1 ? 1 : n < made->row_blocks ? n : made->row_blocks;
    made->batch[0] = (uint32_t)n;
    out->batch_most = n > out->batch_most ? (uint32_t)n : out->batch_most;
    out->encoded_bytes = n * part > out->encoded_bytes ? n * part : out->encoded_bytes;
    out->slot_bytes = slot > out->slot_bytes ? slot : out->slot_bytes;
}

/* Bytes of all blocks of a product before compression: few blocks become larger. */
static uint64_t most_bytes(const struct pb_plan *plan, const struct pb_plan_made *made)
{
    const int32_t block_px = made->blocks.format.block_px;
    struct pb_encode_needs needs = {.raw_bytes = 0};
    uint64_t n = 0;
    (void)pb_encode_measure(&made->blocks.format, 1, &needs);
    for (uint32_t k = 0; k <= made->blocks.levels; k++)
        n += (uint64_t)blocks(halved(plan->layout.grid.image_w, k), block_px) *
             blocks(halved(plan->layout.grid.image_h, k), block_px);
    return made->blocks.format.with != PB_ENCODE_RAW ? n * needs.raw_bytes : 0;
}

static void size_product(const struct pb_plan *plan, struct pb_plan_out *out,
                         struct pb_plan_made *made, uint64_t batch_bytes)
{
    const struct pb_grid *g = &plan->layout.grid;
    const int32_t block_px = made->blocks.format.block_px;
    const int32_t side = g->side_px < g->image_h ? g->side_px : g->image_h;
    if (made->blocks.parts) {
        size_parts(plan, out, made, batch_bytes);
        return;
    }
    made->row_blocks =
        pb_plan_out_makes(made, 0) ? blocks(g->image_w, block_px) * blocks(side, block_px) : 0;
    for (uint32_t k = 1; k <= made->blocks.levels; k++) {
        const struct pb_out_level l = pb_plan_out_level(plan, made, k);
        if (pb_plan_out_makes(made, k))
            made->row_blocks += blocks(l.w, block_px) * blocks(l.rows, block_px);
        out->device_bytes += aligned(l.plane_px * made->n_planes * sizeof(float));
    }
    for (uint32_t layer = 0; layer < (made->blocks.has_mask ? 2u : 1u); layer++)
        size_layer(out, made, layer, batch_bytes);
    out->most_bytes += most_bytes(plan, made);
}

static void size(const struct pb_plan *plan, struct pb_plan_out *out)
{
    const uint32_t strips = sizes[out->size].strips;
    const struct pb_grid *g = &plan->layout.grid;
    const struct pb_tile tile = {.core = {0, 0, g->side_px < g->image_w ? g->side_px : g->image_w,
                                          g->side_px < g->image_h ? g->side_px : g->image_h}};
    out->strips = strips < (uint32_t)g->rows ? strips : (uint32_t)g->rows;
    out->tile_bytes = aligned(pb_plan_out_bytes(plan, &tile));
    out->device_bytes = out->strips * (uint64_t)g->cols * out->tile_bytes;
    out->workspace_bytes = out->encoded_bytes = 0;
    out->batch_most = 0;
    out->most_bytes = 0;
    out->slot_bytes = SLOT_LEAST;
    for (uint32_t i = 0; i < out->n; i++)
        size_product(plan, out, &out->made[i], sizes[out->size].batch_bytes);
    const uint64_t results = aligned(64 + out->batch_most * sizeof(struct pb_encoded));
    out->device_bytes +=
        PB_OUT_BATCHES * (aligned(out->workspace_bytes) + aligned(out->encoded_bytes) + results);
}

/* compute.device_memory for which the smallest size would fit, after fits() has failed. */
static uint64_t least_of_all(const struct pb_plan *plan, const struct pb_plan_out *out)
{
    const uint64_t beside = plan->engine.whole.least_bytes + out->device_bytes;
    return beside > 2 * out->device_bytes ? beside : 2 * out->device_bytes;
}

/* Returns true if it fits in addition to the memory for decoding. */
static bool fits(const struct pb_plan *plan, struct pb_plan_out *out)
{
    const uint64_t all = plan->engine.whole.device_bytes, least = plan->engine.whole.least_bytes;
    const uint64_t left = all > least ? all - least : 0;
    for (out->size = 0; out->size < PB_OUT_SIZES; out->size++) {
        size(plan, out);
        if (out->device_bytes <= left && out->device_bytes <= all / 2)
            return true;
    }
    return false;
}

/* --- products -------------------------------------------------------------------------------- */

/* Bits of the planes of tiles that the product uses. */
static uint64_t planes_of(const struct pb_product_env *env, const struct pb_product_config *config)
{
    uint32_t plane[PB_BANDS_MAX];
    uint64_t bits = 0;
    int n = pb_product_bands(env, config, plane, NULL);
    for (int b = 0; b < n; b++)
        bits |= plane[b] < 64 ? UINT64_C(1) << plane[b] : UINT64_MAX;
    return n < 0 ? UINT64_MAX : bits;
}

/* Sets the first plane and their count up to the last one; format.plane counts from the first. */
static void place_planes(struct pb_plan_made *made)
{
    struct pb_encode_format *f = &made->blocks.format;
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t b = 0; b < f->n_bands; b++) {
        first = f->plane[b] < first ? f->plane[b] : first;
        last = f->plane[b] > last ? f->plane[b] : last;
    }
    made->first_plane = first;
    made->n_planes = last - first + 1;
    for (uint32_t b = 0; b < f->n_bands; b++)
        f->plane[b] = (uint16_t)(f->plane[b] - first);
}

/* True if rows of tiles make whole rows of blocks of a level, or some of them make such a row.
 */
static bool is_even(const struct pb_plan *plan, int32_t block_px)
{
    int32_t side = plan->layout.grid.side_px;
    while (side > block_px && side % 2 == 0)
        side /= 2;
    return side == block_px || pb_grid_count(&plan->layout.grid) == 1;
}

static const char *make_there(const struct pb_plan *plan, const struct pb_product_env *env,
                              size_t i, struct pb_plan_out *out)
{
    const struct pb_product_config *config = env->pipeline->products[i];
    const struct pb_product_type *type = pb_product_type(config->kind);
    struct pb_plan_made made = {.product = (uint32_t)i};
    if (type->on_device == NULL)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_KIND);
    if (out->n == PB_OUT_MADE)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_MORE);
    const char *why = type->on_device(env, config, &made.blocks);
    if (why != NULL)
        return why;
    if (!made.blocks.parts && !is_even(plan, made.blocks.format.block_px))
        return pb_limit_reason(PB_LIMIT_PRODUCTS_SIDE);
    place_planes(&made);
    out->made[out->n++] = made;
    out->by_device |= UINT64_C(1) << i;
    return NULL;
}

/* none: why no product is made there, or NULL. */
static struct pb_plan_out choose(const struct pb_plan *plan, const struct pb_plan_request *r,
                                 const char *none)
{
    struct pb_plan_out out = {.n = 0};
    struct pb_product_env env;
    pb_plan_product_env(plan, r, &env);
    env.by_device = 0;
    for (size_t i = 0; i < r->pipeline->n_products; i++) {
        const struct pb_product_config *config = r->pipeline->products[i];
        if (pb_product_type(config->kind)->tile == NULL)
            continue;
        const char *why = i < PB_OUT_PRODUCTS ? none : pb_limit_reason(PB_LIMIT_PRODUCTS_MANY);
        why = why != NULL ? why : make_there(plan, &env, i, &out);
        if (i < PB_OUT_PRODUCTS)
            out.why[i] = why;
        if (why != NULL)
            out.host_planes |= planes_of(&env, config);
    }
    return out;
}

/* Uses the output side of another process, which has its products; only its planes are unchecked.
 */
static void take_said(struct pb_plan *plan, const struct pb_plan_out *said)
{
    bool good = plan->engine.whole.used && plan->work.outputs.n <= PB_BANDS_MAX;
    plan->engine.out = *said;
    for (uint32_t i = 0; i < said->n; i++)
        good = good && said->made[i].first_plane + said->made[i].n_planes <= plan->work.outputs.n &&
               (said->made[i].blocks.parts || is_even(plan, said->made[i].blocks.format.block_px));
    if (!good)
        plan->engine.out.n = 0;
    else if (plan->engine.out.n > 0)
        size(plan, &plan->engine.out);
}

/* Adds planes that the host needs for whole images. */
static void add_image_planes(const struct pb_plan *plan, struct pb_plan_out *out)
{
    const struct pb_chain_image *image;
    const size_t n = pb_chain_images(plan->work.chain, &image);
    for (size_t i = 0; i < n; i++)
        out->host_planes |= image[i].output < 64 ? UINT64_C(1) << image[i].output : UINT64_MAX;
}

/* Output side of an earlier pass. As far as memory allows, percentiles and moments of one plane are
 * computed on the device, in this process; other reductions need planes on the host. */
static struct pb_plan_out of_earlier(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    struct pb_plan_out out = {.host_planes = UINT64_MAX};
    const struct pb_chain_reduction *reduction;
    const size_t n = pb_chain_reductions(plan->work.chain, &reduction);
    if (!plan->engine.whole.used || r->remote || r->whole_said != 0)
        return out;
    const uint64_t all = plan->engine.whole.device_bytes, least = plan->engine.whole.least_bytes;
    const uint64_t left = all > least ? all - least : 0;
    out.host_planes = 0;
    for (size_t i = 0; i < n; i++) {
        const struct pb_reduce *reduce = &reduction[i].reduce;
        const uint64_t bytes = out.device_bytes + aligned(pb_chain_state_bytes(&reduction[i])) +
                               REDUCE_FLIGHTS * sizeof(struct pb_statistics_part);
        if (i < 64 && bytes <= left &&
            (reduce->kind == PB_REDUCE_PERCENTILES || reduce->kind == PB_REDUCE_MOMENTS)) {
            out.reduced |= UINT64_C(1) << i;
            out.device_bytes = bytes;
            continue;
        }
        for (uint32_t k = 0; k < reduce->n_inputs; k++)
            out.host_planes |=
                reduction[i].output[k] < 64 ? UINT64_C(1) << reduction[i].output[k] : UINT64_MAX;
    }
    add_image_planes(plan, &out);
    return out;
}

void pb_plan_out(struct pb_plan *plan, const struct pb_plan_request *request)
{
    if (plan->is_earlier && request->said_out == NULL) {
        plan->engine.out = of_earlier(plan, request);
        return;
    }
    if (request->said_out != NULL) {
        take_said(plan, request->said_out);
        return;
    }
    const struct pb_engine_case facts = {.plan = plan, .request = request};
    plan->engine.out = choose(plan, request, pb_engine_refuses(PB_ENGINE_PRODUCTS, &facts));
    if (plan->engine.out.n > 0 && !fits(plan, &plan->engine.out)) {
        const uint64_t would_do = least_of_all(plan, &plan->engine.out);
        plan->engine.out = choose(plan, request, pb_limit_reason(PB_LIMIT_PRODUCTS_MEMORY));
        plan->engine.out.why_bytes = would_do;
    }
}
