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
#include "pipeline/plan/layout.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/device/device.h"
#include "pipeline/product/product.h"

#include <math.h>

enum { ROWS_W_MAX = 32768, WAITS_TILES_LEAST = 16 };

enum pb_order pb_plan_order(const struct pb_plan *plan, const struct pb_raster_info *info)
{
    bool aligned = pb_is_power_of_two(info->block_w) && pb_is_power_of_two(info->block_h) &&
                   info->block_w <= 2 * plan->layout.grid.side_px &&
                   info->block_h <= 2 * plan->layout.grid.side_px;
    bool apart = pb_chain_keeps_grid(plan->work.chain) && plan->work.halo == 0;
    return aligned && apart && !info->is_growing ? PB_ORDER_Z : PB_ORDER_ROWS;
}

/* Returns true if line y of the products needs only lines of the scene around y. */
static bool keeps_lines(const struct pb_plan *plan)
{
    const struct pb_geometry g = pb_chain_geometry(plan->work.chain);
    const struct pb_raster_info *const info = &plan->work.info[0];
    return pb_chain_keeps_grid(plan->work.chain) ||
           (g.w == info->width && g.h == info->height && g.frame == 0 &&
            plan->work.warp == PB_CHAIN_NO_WARP && pb_map_is_shift(&g.map) && g.map.offset_x == 0 &&
            g.map.offset_y == 0);
}

int32_t pb_plan_lines(const struct pb_plan *plan)
{
    enum { LINES_MOST = 64 };
    const struct pb_grid *const g = &plan->layout.grid;
    bool may = !plan->is_earlier && !plan->layout.no_strips && plan->work.info[0].is_growing &&
               keeps_lines(plan) && plan->layout.gate.chain == NULL &&
               plan->layout.sums.chain.n == 0 && plan->work.n_wide == 0;
    for (size_t i = 0; i < plan->work.n_sources; i++)
        may = may && (plan->work.source[i].n_bands == 0 || plan->work.info[i].is_growing ||
                      plan->work.info[i].is_made);
    /* A strip has at most as many pixels as a tile. */
    const int64_t lines = (int64_t)g->side_px * g->side_px / g->image_w;
    return !may ? 0 : lines < 1 ? 1 : lines < LINES_MOST ? (int32_t)lines : LINES_MOST;
}

uint32_t pb_plan_spin_limit(const struct pb_plan *plan)
{
    enum { ROUNDS = 4096 }; /* about 100 us */
    return plan->layout.lines > 0 && pb_device_threads(0) > 2 ? ROUNDS : 0;
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

/* --- threads ---------------------------------------------------------------------------------- */

enum { GROUP_MOST = 64 };

/* True if a source decodes from its top only. */
static bool is_top_down(const struct pb_plan *plan)
{
    for (size_t i = 0; i < plan->work.n_sources; i++)
        if (plan->work.source[i].n_bands > 0 && plan->work.info[i].top_down)
            return true;
    return false;
}

/* A thread has one tile at a time, and a slot of each kind. A tile that completes blocks of
 * overviews takes several times as long as others: meanwhile these continue within the window.
 * Measured with 2 threads: a window of n + 1 tiles or of 2 units costs 0 to 1 %, one of n
 * tiles 5 to 20 %. */
static void set_workers(struct pb_plan *plan, uint32_t n, bool lean)
{
    uint32_t tiles = lean ? n : 2 * n,
             unit = pb_order_unit_max(&plan->layout.grid, plan->layout.order);
    plan->layout.workers = plan->layout.writers = plan->layout.in_slots = plan->layout.out_slots =
        n;
    plan->layout.window_units = n == 1 ? 1 : (tiles + unit - 1) / unit + 1;
}

/* With tile workers each thread computes one column of strips; otherwise strips pass the channels
 * in their order, to a device or to one thread. n further threads write tiles. Two rows of tiles
 * are enough if a row is written before the next row is full. With a third row, lines do not wait
 * for a row whose writing takes longer once. */
static void set_strips(struct pb_plan *plan, uint32_t n, bool lean)
{
    enum { DEVICE_SLOTS = 24 };
    const uint32_t rows = (uint32_t)plan->layout.grid.rows;
    const uint32_t most = lean ? n > 1 ? 2 : 1 : 3, cols = (uint32_t)plan->layout.grid.cols;
    set_workers(plan, n, lean);
    plan->layout.strip_cols = !plan->layout.by_workers ? 1 : n < cols ? n : cols;
    plan->layout.strip_rows = most < rows ? most : rows;
    plan->layout.readers = plan->layout.strip_cols;
    plan->layout.workers = plan->layout.by_workers ? plan->layout.strip_cols + n
                           : plan->engine.cuda     ? PB_PLAN_LANES
                                                   : 1;
    plan->layout.writers = n;
    plan->layout.in_slots = plan->layout.out_slots =
        plan->layout.by_workers ? plan->layout.strip_cols : DEVICE_SLOTS;
}

void pb_plan_set_threads(struct pb_plan *plan, uint32_t n, bool lean)
{
    if (plan->layout.lines > 0) {
        set_strips(plan, n, lean);
        return;
    }
    plan->layout.readers = is_top_down(plan) ? 1 : n;
    if (plan->layout.by_workers) {
        set_workers(plan, n, lean);
        return;
    }
    plan->layout.workers = plan->engine.cuda ? PB_PLAN_LANES : n;
    plan->layout.writers = n;
    plan->layout.in_slots = (lean ? n : plan->layout.readers + plan->layout.workers) + 1;
    /* Blocks that are read in place occupy their slots until they are decoded: those of a group,
     * and meanwhile those of the next one. */
    if (plan->engine.whole.used && plan->engine.whole.in_place)
        plan->layout.in_slots +=
            2 * (plan->engine.whole.streams < GROUP_MOST ? plan->engine.whole.streams : GROUP_MOST);
    plan->layout.out_slots = (lean ? n : plan->layout.workers + plan->layout.writers) + 1;
    uint32_t tiles = plan->layout.in_slots + plan->layout.out_slots + (lean ? 0 : 2 * n);
    uint32_t unit = pb_order_unit_max(&plan->layout.grid, plan->layout.order);
    plan->layout.window_units = (tiles + unit - 1) / unit + n;
}

struct pb_slot_format pb_plan_slot_format(const struct pb_plan *plan)
{
    struct pb_slot_format format = {.image_w = plan->layout.grid.image_w,
                                    .image_h = plan->layout.grid.image_h};
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_plan_source *source = &plan->work.source[i];
        struct pb_source_format *window = &format.source[source->window];
        if (source->n_bands == 0) /* the source is not read */
            continue;
        window->n_planes += (uint32_t)source->n_bands;
        window->sample_bytes = (uint32_t)pb_type_bytes(source->type);
        window->has_mask = source->has_mask;
    }
    return format;
}

void pb_plan_product_env(const struct pb_plan *plan, const struct pb_plan_request *request,
                         struct pb_product_env *out_env)
{
    uint64_t tiles = (uint64_t)plan->layout.window_units *
                     pb_order_unit_max(&plan->layout.grid, plan->layout.order);
    uint32_t all = pb_grid_count(&plan->layout.grid);
    *out_env = (struct pb_product_env){
        .config = request->config,
        .pipeline = request->pipeline,
        .info = request->info,
        .grid = &plan->layout.grid,
        .order = plan->layout.order,
        .tiles_in_flight = tiles < all ? (uint32_t)tiles : all,
        .workers = pb_plan_sink_workers(plan),
        .by_device = plan->engine.out.by_device,
        .band_names = (const char *const *)plan->work.outputs.names,
        .scene_bands = plan->work.outputs.bands,
        .tags = plan->work.outputs.tags,
        .kept = plan->work.outputs.kept,
        .valid_notes = plan->work.valid.notes,
        .rest = plan->work.outputs.n_rest > 0 ? plan->work.outputs.rest : NULL,
        .classes = plan->work.chain != NULL ? pb_chain_classes(plan->work.chain) : NULL,
        .chain = plan->work.chain,
        .n_bands = plan->work.outputs.n,
        .n_default = plan->work.outputs.n_default,
        .prepared = plan->work.prepared,
        .placed = plan->work.placed,
        .place_info = plan->work.placed != NULL ? pb_raster_info(plan->work.placed) : request->info,
    };
    pb_product_place(out_env, &plan->work.geometry);
}

/* --- the gate --------------------------------------------------------------------------------- */

enum { SQUARE_PX = 512 };

void pb_plan_gate_split(struct pb_plan *plan, uint32_t source, const struct pb_raster_info *info)
{
    const struct pb_chain *gate = pb_chain_gate(plan->work.chain);
    struct pb_plan_source *s = &plan->work.source[source];
    size_t first = gate != NULL ? pb_chain_planes_of(gate, source) : 0;
    s->n_later = first > 0 && info->pixel_interleaved ? 0 : s->n_bands - first;
}

void pb_plan_gate_set(struct pb_plan *plan)
{
    struct pb_plan_gate gate = {.chain = pb_chain_gate(plan->work.chain),
                                .format = plan->layout.format};
    plan->layout.gate = gate;
    if (gate.chain == NULL)
        return;
    /* With a gate each file has its own window. */
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_plan_bands first = pb_plan_bands_of(&plan->work.source[i], PB_PLAN_FIRST);
        gate.format.source[i].n_planes = (uint32_t)first.n;
        gate.format.source[i].has_mask = first.has_mask;
    }
    plan->layout.gate = gate;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Smallest rectangle around both. */
static struct pb_rect united(const struct pb_rect *a, const struct pb_rect *b)
{
    if (a->w <= 0 || b->w <= 0)
        return a->w <= 0 ? *b : *a;
    int32_t x = smaller(a->x, b->x), y = smaller(a->y, b->y);
    return (struct pb_rect){x, y, larger(a->x + a->w, b->x + b->w) - x,
                            larger(a->y + a->h, b->y + b->h) - y};
}

struct pb_tile pb_plan_gate_tile(const struct pb_plan *plan, const struct pb_tile *tile)
{
    struct pb_tile first = *tile;
    first.core = pb_chain_gate_rect(plan->work.chain, &tile->core, true);
    for (uint32_t i = 0; i < plan->work.n_sources; i++) {
        struct pb_rect need = {0, 0, 0, 0};
        if (plan->layout.gate.format.source[i].n_planes == 0) {
            first.read[i] = need;
            continue;
        }
        if (first.core.w > 0 && pb_chain_planes_of(plan->layout.gate.chain, i) > 0)
            need = pb_chain_need(plan->layout.gate.chain, i, &first.core);
        first.read[i] = united(&need, &tile->read[i]);
    }
    return first;
}

struct pb_plan_gate_look pb_plan_gate_look(const struct pb_plan *plan, const struct pb_tile *tile)
{
    const double minimum = pb_chain_gate_minimum(plan->work.chain);
    struct pb_plan_gate_look look = {
        .first = pb_plan_gate_tile(plan, tile),
        .part = pb_chain_gate_rect(plan->work.chain, &tile->core, minimum == 0),
        .enough = 1};
    if (minimum > 0)
        look.enough = (uint64_t)ceil(minimum * look.part.w * look.part.h);
    return look;
}

struct pb_rect pb_plan_gate_most(const struct pb_plan *plan)
{
    const struct pb_grid *g = &plan->layout.grid;
    return pb_chain_gate_rect_most(plan->work.chain, smaller(g->side_px, g->image_w),
                                   smaller(g->side_px, g->image_h));
}

uint64_t pb_plan_gate_device_bytes(const struct pb_plan *plan)
{
    if (pb_chain_gate(plan->work.chain) == NULL)
        return 0;
    const struct pb_rect most = pb_plan_gate_most(plan);
    return PB_GATE_BATCH * (uint64_t)most.w * (uint64_t)most.h * sizeof(float);
}

struct pb_tile_in pb_plan_gate_view(const struct pb_plan *plan, const struct pb_tile_in *in,
                                    const struct pb_slot_format *format)
{
    const struct pb_chain *chain = plan->layout.gate.chain;
    const struct pb_geometry grid = pb_chain_geometry(chain);
    struct pb_tile_in view = *in;
    view.image_w = grid.w;
    view.image_h = grid.h;
    for (uint32_t i = 0; i < plan->work.n_sources; i++) {
        const size_t before = format->source[i].n_planes - pb_chain_planes_of(chain, i);
        if (view.window[i].data != NULL)
            view.window[i].data = (char *)view.window[i].data + before * view.window[i].plane_bytes;
    }
    return view;
}

void pb_plan_gate_size(struct pb_plan *plan, const struct pb_tile *largest)
{
    if (plan->layout.gate.chain == NULL)
        return;
    struct pb_rect core =
        pb_chain_gate_rect_most(plan->work.chain, largest->core.w, largest->core.h);
    struct pb_tile first = *largest;
    for (uint32_t i = 0; i < plan->work.n_sources; i++) {
        struct pb_rect need = pb_chain_need_most(plan->layout.gate.chain, i, core.w, core.h);
        /* Both grow by the same amount on every side, except for rounding. */
        first.read[i].w = larger(need.w, largest->read[i].w) + 2;
        first.read[i].h = larger(need.h, largest->read[i].h) + 2;
    }
    plan->layout.gate.plane_px = (size_t)core.w * (size_t)core.h;
    plan->layout.gate.read_bytes = pb_slot_tile_bytes(&plan->layout.gate.format, &first);
    plan->layout.gate.scratch_bytes =
        pb_chain_scratch_bytes(plan->layout.gate.chain, core.w, core.h);
}

uint64_t pb_plan_gate_blocks(const struct pb_plan_source *source, const struct pb_raster_info *info)
{
    uint64_t across =
        ((uint64_t)info->width + (uint64_t)info->block_w - 1) / (uint64_t)info->block_w;
    uint64_t down =
        ((uint64_t)info->height + (uint64_t)info->block_h - 1) / (uint64_t)info->block_h;
    return source->n_later > 0 ? across * down : 0;
}

uint64_t pb_plan_gate_bytes(const struct pb_plan *plan)
{
    const struct pb_plan_gate *g = &plan->layout.gate;
    if (g->chain == NULL)
        return 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++)
        bytes += 2 * (pb_plan_gate_blocks(&plan->work.source[i], &plan->work.info[i]) / 8 + 8);
    if (plan->engine.whole.used) /* the device computes the gate */
        return bytes;
    return bytes + plan->layout.readers *
                       ((uint64_t)g->read_bytes + g->scratch_bytes + g->plane_px * sizeof(float));
}

int32_t pb_plan_gate_side(const struct pb_plan *plan)
{
    return pb_chain_gate(plan->work.chain) != NULL && pb_chain_gate_minimum(plan->work.chain) > 0
               ? SQUARE_PX
               : 0;
}
