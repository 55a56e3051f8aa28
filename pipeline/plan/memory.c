/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Fits a plan to the budget. A candidate is a number of threads, a width of stripes and a height of
 * cells. Each has a price, the decoding of a reader relative to the least possible; they are
 * compared from the cheapest up, and the first that fits is the plan. A sixteenth more decoding
 * is free here, because it saves memory. More than DECODES_MAX times as much is never planned.
 *
 * Each number of threads has a candidate with a window of tiles in flight for which no thread ever
 * waits, and a lean one with about half of it; if the stages have threads of their own, with slots
 * for all of them at once, or one slot more than cores. Lean costs a little, LEAN_PRICE.
 *
 * None of the sums depends on the budget, therefore a budget of the least sum, which a refusal
 * reports, is accepted. The memory of products needs a walk over the blocks of overviews
 * (pyramid_bound.c): it is computed when the rest fits, and once for all candidates with the same
 * visiting order. A sum beyond 64 bits saturates.
 *
 * The input of a pass with several rounds is kept after the first, if the budget has room for
 * all of it: otherwise the rest of a scene would have to be read again anyway. Tiles that a gate
 * may leave out are read again; and if blocks are sent to a GPU as they are stored, no reader has
 * tiles. */
#include "pipeline/plan/memory.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/staged.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/cache.h"
#include "pipeline/plan/values.h"
#include "pipeline/plan/layout.h"
#include "pipeline/plan/work.h"
#include "pipeline/product/product.h"
#include "pipeline/profile/trace.h"

#include "kernels/areas/areas.h"
#include "wic/wic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DECODES_MAX  4.0
#define DECODES_EVEN 1.0625
#define LEAN_PRICE   1.03

enum { CANDIDATES_MAX = 2048, PRICED_MAX = 8 };

struct candidate {
    double price;
    uint32_t threads;
    int32_t stripe_cols;
    uint32_t growth;
    bool lean;
    uint64_t product_bytes; /* 0 = not computed yet */
};

/* Candidates of a pass, and the plan that one of them is at a time. */
struct search {
    struct pb_plan plan;
    const struct pb_plan_request *request;
    size_t n;
    struct candidate at[CANDIDATES_MAX];
};

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int32_t clipped(int32_t length, int32_t end)
{
    return length < end ? length : end;
}

void pb_plan_size_slots(struct pb_plan *plan)
{
    const struct pb_grid *g = &plan->layout.grid;
    const int32_t around = 2 * plan->work.halo;
    int32_t w, h;
    pb_plan_core_most(plan, &w, &h);
    struct pb_rect read = {0, 0, clipped(w + around, g->image_w), clipped(h + around, g->image_h)};
    struct pb_tile largest = {.core = {0, 0, w, h}, .read = {read}};
    for (uint32_t i = 0; !pb_chain_keeps_grid(plan->work.chain) && i < plan->work.n_windows; i++)
        largest.read[i] = pb_chain_need_most(plan->work.chain, i, w, h);
    plan->layout.in_slot_bytes = pb_slot_tile_bytes(&plan->layout.format, &largest);
    if (plan->engine.whole.used && plan->layout.in_slot_bytes < plan->engine.whole.piece_bytes)
        plan->layout.in_slot_bytes = (size_t)plan->engine.whole.piece_bytes;
    plan->layout.out_slot_bytes = plan->engine.out.n == 0 || pb_plan_out_has_planes(plan)
                                      ? pb_plan_out_bytes(plan, &largest)
                                      : 0;
    if (plan->engine.out.n > 0 && plan->layout.out_slot_bytes < plan->engine.out.slot_bytes)
        plan->layout.out_slot_bytes = (size_t)plan->engine.out.slot_bytes;
    plan->layout.scratch_bytes = pb_chain_scratch_bytes(plan->work.chain, w, h);
    pb_plan_gate_size(plan, &largest);
}

/* Bytes of the tiles of a unit, for each reader and the window; and of the window's counters. */
static uint64_t list_bytes(const struct pb_plan *plan)
{
    uint64_t unit = pb_order_unit_max(&plan->layout.grid, plan->layout.order);
    return sizeof(uint32_t) *
           ((plan->layout.readers + (uint64_t)1) * unit + plan->layout.window_units);
}

static uint64_t slots_bytes(const struct pb_plan *plan)
{
    return (uint64_t)plan->layout.in_slots * wic_slot_stride(plan->layout.in_slot_bytes) +
           (uint64_t)plan->layout.out_slots * wic_slot_stride(plan->layout.out_slot_bytes);
}

/* Makes the plan that of the candidate, without the products, whatever candidate it was. */
static void apply(struct search *s, const struct candidate *c)
{
    struct pb_plan *plan = &s->plan;
    const struct pb_plan_request *r = s->request;
    plan->layout.grid.stripe_cols = c->stripe_cols;
    plan->layout.grid.unit_cols = 1;
    pb_plan_set_threads(plan, c->threads, c->lean);
    plan->layout.price = c->price;
    if (plan->engine.whole.used) /* the GPU keeps the pixels that tiles share */
        plan->layout.decoding = pb_plan_whole_decoding(plan);
    else
        plan->layout.decoding = pb_chain_keeps_grid(plan->work.chain)
                                    ? pb_plan_cache(plan, c->growth)
                                    : pb_plan_cache_mapped(plan);
    plan->layout.readers = plan->layout.decoding.readers;
    plan->memory.product_bytes = 0;
    plan->memory.total_bytes =
        plan->layout.decoding.cells_bytes + plan->layout.decoding.cache_bytes +
        plan->layout.decoding.reader_bytes + slots_bytes(plan) + plan->engine.whole.planes_bytes +
        (plan->engine.cuda ? 0 : (uint64_t)plan->layout.workers * plan->layout.scratch_bytes) +
        pb_plan_strip_rows_bytes(plan) + pb_chain_warp_bytes(plan->work.chain) +
        pb_chain_curve_bytes(plan->work.chain) + pb_plan_gate_bytes(plan) + list_bytes(plan) +
        pb_plan_rest_bytes(plan) + r->cutline_bytes +
        plan->layout.readers * r->cutline_thread_bytes + (r->remote ? 0 : pb_trace_bytes());
}

static uint64_t product_bytes(const struct pb_plan *plan, const struct pb_plan_request *r)
{
    struct pb_product_env env;
    uint64_t bytes = 0;
    pb_plan_product_env(plan, r, &env);
    for (size_t i = 0; i < r->pipeline->n_products; i++) {
        const struct pb_product_config *p = r->pipeline->products[i];
        const struct pb_product_type *type = pb_product_type(p->kind);
        if (type->bytes != NULL)
            bytes = add(bytes, type->bytes(&env, p));
    }
    return bytes;
}

/* Bytes of the reductions' states in an earlier pass: a set for each writer and one more. */
static uint64_t reduce_bytes(const struct pb_plan *plan)
{
    return (pb_plan_sink_workers(plan) + (uint64_t)1 + (plan->engine.out.reduced != 0)) *
           pb_chain_reduce_bytes(plan->work.chain);
}

/* Most memory at a time, in this pass or, with the products, in an earlier one. */
static uint64_t needed(const struct pb_plan *plan)
{
    uint64_t before = plan->memory.reserve_bytes > 0
                          ? add(plan->memory.product_bytes, plan->memory.reserve_bytes)
                          : 0;
    return plan->memory.total_bytes > before ? plan->memory.total_bytes : before;
}

/* Adds the products of candidate i, which the plan is. They depend on threads and stripes, which
 * determine the count and the order of tiles in flight; the growth of cells has no influence. */
static void add_products(struct search *s, size_t i)
{
    struct pb_plan *plan = &s->plan;
    struct candidate *c = &s->at[i];
    if (plan->is_earlier) { /* the products are in memory already */
        plan->memory.product_bytes = plan->memory.held_bytes;
        plan->memory.reduce_bytes = reduce_bytes(plan);
        plan->memory.image_bytes = pb_plan_image_bytes(plan);
        plan->memory.total_bytes = add(plan->memory.total_bytes,
                                       add(plan->memory.product_bytes, plan->memory.reduce_bytes));
        plan->memory.total_bytes = add(plan->memory.total_bytes, plan->memory.image_bytes);
        return;
    }
    for (size_t k = 0; k < s->n && c->product_bytes == 0; k++)
        if (s->at[k].threads == c->threads && s->at[k].stripe_cols == c->stripe_cols &&
            s->at[k].lean == c->lean)
            c->product_bytes = s->at[k].product_bytes;
    if (c->product_bytes == 0)
        c->product_bytes = product_bytes(plan, s->request);
    plan->memory.product_bytes = c->product_bytes;
    plan->memory.total_bytes = add(plan->memory.total_bytes, plan->memory.product_bytes);
}

/* --- the candidates -------------------------------------------------------------------------- */

static void add_one(struct search *s, struct candidate c)
{
    const struct pb_plan *plan = &s->plan;
    if (s->n == CANDIDATES_MAX)
        return;
    apply(s, &c);
    double decodes = plan->layout.decoding.decodes;
    c.price =
        (decodes > DECODES_EVEN ? decodes : DECODES_EVEN) / plan->layout.readers + 1.0 / c.threads;
    c.price *= c.lean ? LEAN_PRICE : 1.0;
    if (decodes <= DECODES_MAX)
        s->at[s->n++] = c;
}

/* Adds a candidate and its lean variant. A GPU's stages do not share the cores: its slots are never
 * lean. */
static void add_candidate(struct search *s, struct candidate c)
{
    add_one(s, c);
    c.lean = true;
    if (!s->plan.engine.cuda)
        add_one(s, c);
}

static void add_stripes(struct search *s, uint32_t threads)
{
    const struct pb_plan *plan = &s->plan;
    uint32_t growth = pb_chain_keeps_grid(plan->work.chain) ? pb_plan_cache_grow(plan) : 0;
    for (uint32_t g = 0; g <= growth; g++) {
        struct candidate c = {.threads = threads, .growth = g};
        add_candidate(s, c);
        /* Powers of two: other widths would split the blocks of overviews. */
        bool striped = !s->request->info->is_growing && plan->layout.order != PB_ORDER_Z &&
                       !plan->layout.whole_rows;
        for (c.stripe_cols = 1; striped && c.stripe_cols < plan->layout.grid.cols;
             c.stripe_cols *= 2)
            add_candidate(s, c);
    }
}

static int32_t width_of(const struct candidate *c)
{
    return c->stripe_cols > 0 ? c->stripe_cols : INT32_MAX;
}

/* Cheapest first; of equal price the one with more threads first, then the one with less memory. */
static int by_price(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->price != y->price)
        return x->price < y->price ? -1 : 1;
    if (x->threads != y->threads)
        return x->threads > y->threads ? -1 : 1;
    if (width_of(x) != width_of(y))
        return width_of(x) < width_of(y) ? -1 : 1;
    return x->growth < y->growth ? -1 : x->growth > y->growth;
}

static uint32_t threads_wanted(const struct search *s)
{
    uint32_t n = pb_device_threads(s->request->config->compute.threads);
    uint32_t tiles = pb_grid_count(&s->plan.layout.grid);
    return n < tiles ? n : tiles;
}

static void list_candidates(struct search *s)
{
    uint32_t n = threads_wanted(s);
    /* All threads, then steps of about an eighth down to one. */
    for (;; n -= (n + 7) / 8) {
        add_stripes(s, n);
        if (n == 1)
            break;
    }
    qsort(s->at, s->n, sizeof s->at[0], by_price);
}

/* Makes the plan that of the candidate that needs the least memory. Costly candidates take little
 * of it: from the last one on, the memory of the products is computed for few. */
static void apply_least(struct search *s)
{
    const struct pb_plan *plan = &s->plan;
    size_t best = s->n - 1;
    uint64_t least = UINT64_MAX;
    for (size_t i = s->n; i-- > 0;) {
        apply(s, &s->at[i]);
        if (plan->memory.total_bytes >= least)
            continue;
        add_products(s, i);
        if (needed(plan) < least) {
            least = needed(plan);
            best = i;
        }
    }
    apply(s, &s->at[best]);
    add_products(s, best);
}

uint64_t pb_plan_mib(uint64_t bytes)
{
    return (bytes >> 20) + (bytes % (1u << 20) != 0);
}

/* Fills *err for the plan that needs the least memory, and returns its errno. */
static int refuse(const struct search *s, struct pb_err *err)
{
    const struct pb_plan *plan = &s->plan;
    const struct pb_plan_request *r = s->request;
    const uint64_t least = needed(plan);
    uint64_t decoded = plan->layout.decoding.cells_bytes + plan->layout.decoding.cache_bytes +
                       plan->layout.decoding.reader_bytes;
    if (plan->memory.image_bytes == UINT64_MAX)
        return pb_fail(err, PB_E_PIPELINE_GRID,
                       "pipeline %s cannot sieve an image of %d x %d: with cells of %d px more "
                       "than %u pixels are at their borders, the limit for areas there; crop the "
                       "image, or sieve a coarser one",
                       r->pipeline->name, plan->layout.grid.image_w, plan->layout.grid.image_h,
                       pb_areas_side(plan->layout.grid.side_px), UINT32_MAX);
    if (least == UINT64_MAX)
        return pb_fail(err, PB_E_PLAN_MEMORY,
                       "no compute.memory is enough for the products of pipeline %s on this scene "
                       "(%d x %d): lower the blocksize of its cogs, or name fewer bands in them",
                       r->pipeline->name, r->info->width, r->info->height);
    if (least > plan->memory.total_bytes)
        return pb_fail(
            err, PB_E_PLAN_MEMORY,
            "compute.memory is %llu MiB, but this scene (%d x %d, blocks of %d x %d) " PB_PLAN_NEEDS
            ": %llu for products, %llu for the pass before, "
            "which %s the image",
            (unsigned long long)(r->config->compute.memory_bytes >> 20), r->info->width,
            r->info->height, r->info->block_w, r->info->block_h,
            (unsigned long long)pb_plan_mib(least),
            (unsigned long long)pb_plan_mib(plan->memory.product_bytes),
            (unsigned long long)pb_plan_mib(plan->memory.reserve_bytes),
            plan->work.n_images > 0 ? "reduces or sieves" : "reduces");
    char reductions[60] = "", areas[60] = "";
    if (plan->memory.reduce_bytes > 0)
        (void)snprintf(reductions, sizeof reductions, "%llu for reductions, ",
                       (unsigned long long)pb_plan_mib(plan->memory.reduce_bytes));
    if (plan->memory.image_bytes > 0)
        (void)snprintf(areas, sizeof areas, "%llu for the areas that are sieved, ",
                       (unsigned long long)pb_plan_mib(plan->memory.image_bytes));
    return pb_fail(
        err, PB_E_PLAN_MEMORY,
        "compute.memory is %llu MiB, but this scene (%d x %d, blocks of %d x %d) " PB_PLAN_NEEDS
        ": %llu for decoded blocks, %llu for products, %s%s%llu for "
        "tiles of %d px",
        (unsigned long long)(r->config->compute.memory_bytes >> 20), r->info->width,
        r->info->height, r->info->block_w, r->info->block_h,
        (unsigned long long)pb_plan_mib(plan->memory.total_bytes),
        (unsigned long long)pb_plan_mib(decoded),
        (unsigned long long)pb_plan_mib(plan->memory.product_bytes), reductions, areas,
        (unsigned long long)pb_plan_mib(plan->memory.total_bytes - decoded -
                                        plan->memory.product_bytes - plan->memory.reduce_bytes -
                                        plan->memory.image_bytes),
        plan->layout.grid.side_px);
}

/* Begins with the memory of a tile and all candidates: at least one, because a stripe of all
 * columns decodes once. NULL: out of memory; else the caller frees it. */
static struct search *begin(const struct pb_plan *base, const struct pb_plan_request *request)
{
    struct search *s = malloc(sizeof *s);
    if (s == NULL)
        return NULL;
    s->plan = *base;
    s->request = request;
    s->n = 0;
    pb_plan_size_slots(&s->plan);
    list_candidates(s);
    return s;
}

uint64_t pb_plan_least_bytes(const struct pb_plan *base, const struct pb_plan_request *request)
{
    struct search *s = begin(base, request);
    if (s == NULL)
        return 0; /* the plan itself will fail */
    apply_least(s);
    const uint64_t bytes = needed(&s->plan);
    free(s);
    return bytes;
}

/* Least memory of the cheapest plans that have all threads. */
static uint64_t wanted_bytes(struct search *s)
{
    const struct pb_plan *plan = &s->plan;
    const uint32_t threads = threads_wanted(s);
    uint64_t least = UINT64_MAX;
    for (size_t i = 0, priced = 0; i < s->n && priced < PRICED_MAX; i++) {
        if (s->at[i].threads != threads)
            continue;
        apply(s, &s->at[i]);
        add_products(s, i);
        least = needed(plan) < least ? needed(plan) : least;
        priced++;
    }
    return least == UINT64_MAX ? 0 : least;
}

/* Gives the rest of the budget to finished blocks that a device makes: a product whose blocks are
 * all in memory is written by one thread in the order of the file. Sixteen writers at once wait for
 * the lock of its inode, and the gaps between their blocks have to be closed after all are on the
 * disk. */
static void give_room(struct pb_plan *plan, uint64_t left)
{
    const uint64_t most = plan->engine.out.n > 0 ? plan->engine.out.most_bytes : 0;
    plan->engine.out.room_bytes = most < left ? most : left;
    plan->memory.total_bytes += plan->engine.out.room_bytes;
}

int pb_plan_fit(const struct pb_plan *base, const struct pb_plan_request *request,
                struct pb_err *err, struct pb_plan *out_plan)
{
    uint64_t budget = request->config->compute.memory_bytes;
    struct search *s = begin(base, request);
    if (s == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    int rc = -ENOMEM;
    for (size_t i = 0; i < s->n && rc < 0; i++) {
        apply(s, &s->at[i]);
        if (s->plan.memory.total_bytes > budget)
            continue;
        add_products(s, i);
        rc = needed(&s->plan) > budget ? rc : 0;
    }
    if (rc == 0) {
        *out_plan = s->plan;
        out_plan->layout.threads_wanted = threads_wanted(s);
        give_room(out_plan, budget - needed(&s->plan));
        if (!out_plan->engine.cuda && out_plan->layout.writers < out_plan->layout.threads_wanted)
            out_plan->memory.wanted_bytes = wanted_bytes(s);
    } else {
        apply_least(s);
        rc = refuse(s, err);
    }
    free(s);
    return rc;
}

/* --- tiles that stay -------------------------------------------------------------------------- */

void pb_plan_keep(struct pb_plan *plan, uint64_t budget)
{
    const uint32_t n = pb_grid_count(&plan->layout.grid);
    uint64_t bytes = n * (uint64_t)sizeof(size_t);
    plan->memory.kept_bytes = 0;
    if (!plan->is_earlier || pb_chain_rounds(plan->work.chain) < 2 ||
        plan->layout.gate.chain != NULL || plan->engine.whole.used)
        return;
    for (uint32_t i = 0; i < n && plan->memory.total_bytes + bytes <= budget; i++)
        bytes += pb_plan_kept_bytes_of(plan, i);
    if (plan->memory.total_bytes + bytes > budget)
        return;
    plan->memory.kept_bytes = bytes;
    plan->memory.total_bytes += bytes;
}
