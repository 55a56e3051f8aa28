/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a transfer plan. The table has what measured best (wic-bench --sweep) on a GPU model for
 * tiles up to a size; the first row that fits is taken. The last rows are for every GPU of an
 * architecture and take little shared memory, so that they fit on all. Then the plan is limited by
 * the tile (a piece is never longer) and by the device. */
#include "wic/device/stay.h"
#include "wic/device/transfer_plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define KIB      1024u
#define MIB      (1024 * KIB)
#define UNIT_MAX (256 * KIB)

enum { BLOCKS_MAX = 3200 }; /* percent: 32 blocks a multiprocessor */

struct row {
    const char *model; /* part of the device's name; "" = any */
    int32_t compute;   /* this or later */
    size_t tile_bytes; /* up to this, 0 = any */
    struct wic_transfer_row plan;
};

/* H200, PCIe 5 x16, NDVI of 16-bit bands, pulled: 49.5 GB/s from 16 KiB tiles up, by 40 blocks as
 * by 132, 39.8 by 16. 8 KiB pieces: 48.3; without a bound on what crosses the link: 37 to 44;
 * results by bulk copy: same throughput, 0.8 us later; 8 warps instead of 16: 0.9 us later; more
 * stages: no gain. By copy engine: 52 GB/s. A block has one pull under way: tiles of 4 KiB are
 * pulled at 39 GB/s by 51 blocks of 16 warps, at 44 to 46 by 132 of 4. Code for sm_80 (cp.async)
 * on the same GPU: 49.3 with the same bound. Code for sm_75 (loads): 19 with it, 32 with twice, 45
 * with four times as much, 49.2 without, because a warp that loads has less in transfer than a
 * copy. The rows for every GPU of an architecture leave multiprocessors to other kernels. */
/* clang-format off */
static const struct row rows[] = {
    {"H200", 90,  8 * KIB, { 8 * KIB, 5, 100,  4, WIC_PUSH_STORES, 256 * KIB, 4 * MIB}},
    {"",     90,        0, {16 * KIB, 2,  39, 16, WIC_PUSH_STORES, 256 * KIB, 4 * MIB}},
    {"",     80,        0, { 8 * KIB, 2,  39, 16, WIC_PUSH_STORES, 256 * KIB, 4 * MIB}},
    {"",     75,        0, { 8 * KIB, 2,  75, 16, WIC_PUSH_STORES,   4 * MIB, 4 * MIB}},
};
/* clang-format on */

static const struct wic_transfer_row *find_row(const struct wic_gpu *gpu, size_t tile_bytes)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        if (strstr(gpu->name, row->model) != NULL && gpu->compute >= row->compute &&
            (row->tile_bytes == 0 || tile_bytes <= row->tile_bytes)) {
            return &row->plan;
        }
    }
    return NULL;
}

/* The smallest number of units that is a multiple of 16 bytes on both sides. */
static size_t granule_of(const struct wic_tile_shape *shape)
{
    size_t granule = 1;
    while (granule * shape->in_unit % 16 != 0 || granule * shape->out_unit % 16 != 0) {
        granule *= 2; /* 16 at most */
    }
    return granule;
}

static void set_piece(struct wic_transfer_plan *plan, size_t units, size_t tile_units)
{
    plan->piece_units = (uint32_t)units;
    plan->in_piece = (uint32_t)(units * plan->in_unit);
    plan->out_piece = (uint32_t)(units * plan->out_unit);
    plan->pieces = (uint32_t)((tile_units + units - 1) / units);
}

static bool fits(const struct wic_transfer_plan *plan, const struct wic_gpu *gpu,
                 uint32_t per_processor)
{
    uint32_t shared = wic_transfer_plan_shared_bytes(plan);
    return shared <= gpu->shared_block_bytes &&
           (size_t)(shared + KIB) * per_processor <= gpu->shared_bytes;
}

/* percent: of the multiprocessors that get a block; over 100, several each. */
static void set_blocks(struct wic_transfer_plan *plan, const struct wic_gpu *gpu, uint32_t percent,
                       uint32_t pulls)
{
    uint32_t blocks = gpu->multiprocessors * percent / 100;
    plan->blocks = blocks > 0 ? blocks : 1;
    plan->pulls = pulls < plan->blocks ? pulls : plan->blocks;
}

static uint32_t percent_of(const struct wic_transfer_row *row, const struct wic_work *work)
{
    return work->blocks ? 100 * work->blocks : row->blocks;
}

/* Reduces the plan, in the order that costs least throughput, until the blocks fit: depth down to
 * 2, one block a multiprocessor, shorter pieces down to an eighth, depth 1, shorter pieces. */
static int fit(struct wic_transfer_plan *plan, const struct wic_gpu *gpu,
               const struct wic_transfer_row *row, const struct wic_work *work, size_t granule,
               size_t tile_units)
{
    uint32_t percent = percent_of(row, work);
    while (!fits(plan, gpu, (percent + 99) / 100)) {
        size_t units = plan->piece_units;
        bool short_already = plan->in_piece <= row->piece / 8;
        if (plan->depth > 2) {
            plan->depth--;
        } else if (percent > 100) {
            percent -= 100;
        } else if (units > granule && (!short_already || plan->depth == 1)) {
            set_piece(plan, (units / 2 + granule - 1) / granule * granule, tile_units);
        } else if (plan->depth > 1) {
            plan->depth--;
        } else {
            return wic_stay_refuse(-E2BIG,
                                   "a block needs %u bytes of shared memory for one piece of %zu "
                                   "units, and %s has %u: use smaller units",
                                   wic_transfer_plan_shared_bytes(plan), units, gpu->name,
                                   gpu->shared_block_bytes);
        }
    }
    set_blocks(plan, gpu, percent, (row->link_bytes + plan->in_piece - 1) / plan->in_piece);
    return 0;
}

static const struct wic_work no_work = {0};

static bool is_valid(const struct wic_gpu *gpu, const struct wic_work *work,
                     const struct wic_transfer_plan *out_plan)
{
    return gpu != NULL && out_plan != NULL && work->warps <= 32 - WIC_SERVICE_WARPS &&
           work->user_bytes <= WIC_PLAN_USER_MAX && work->user_bytes % 16 == 0;
}

static void set_work(struct wic_transfer_plan *plan, const struct wic_transfer_row *row,
                     const struct wic_work *work)
{
    plan->results = row->results;
    plan->depth = row->depth;
    plan->warps = work->warps ? work->warps : row->warps;
    plan->work_bytes = (work->shared_bytes + 127) / 128 * 128;
    plan->user_bytes = work->user_bytes;
    plan->engine_backlog = row->backlog;
}

/* For reporting only: the copy instruction is fixed at compile time (wic/device/barrier.cuh), so
 * code compiled for an older architecture uses the older one on a newer GPU, too. */
static enum wic_transport pull_of(const struct wic_gpu *gpu)
{
    return gpu->compute >= 90   ? WIC_PULL_BULK
           : gpu->compute >= 80 ? WIC_PULL_ASYNC
                                : WIC_PULL_LOADS;
}

static int refuse_gpu(const struct wic_gpu *gpu)
{
    return wic_stay_refuse(-ENODEV,
                           "%s has compute capability %d.%d, and 7.5 is the oldest that "
                           "wic supports",
                           gpu->name, (int)gpu->compute / 10, (int)gpu->compute % 10);
}

static bool is_shape(const struct wic_tile_shape *shape)
{
    return shape != NULL && shape->slot_bytes > 0 && shape->slot_bytes <= INT32_MAX &&
           shape->in_unit - 1u < UNIT_MAX && shape->out_unit <= UNIT_MAX;
}

static int refuse_shape(void)
{
    return wic_stay_refuse(-EINVAL,
                           "a tile has 1 byte to 2 GiB, in units of 1 byte to %u KiB; "
                           "work has up to %u warps and %u user bytes, in multiples of 16",
                           UNIT_MAX / KIB, 32 - WIC_SERVICE_WARPS, WIC_PLAN_USER_MAX);
}

bool wic_transfer_row_is_valid(const struct wic_transfer_row *row)
{
    return row->piece > 0 && row->piece <= UNIT_MAX && row->depth > 0 &&
           row->depth <= WIC_PLAN_DEPTH_MAX && row->blocks > 0 && row->blocks <= BLOCKS_MAX &&
           row->warps > 0 && row->warps <= 32 - WIC_SERVICE_WARPS && row->link_bytes > 0 &&
           row->link_bytes <= INT32_MAX && row->backlog <= INT32_MAX &&
           (row->results == WIC_PUSH_BULK || row->results == WIC_PUSH_STORES);
}

int wic_transfer_row_find(const struct wic_gpu *gpu, size_t tile_bytes,
                          struct wic_transfer_row *out_row)
{
    const struct wic_transfer_row *row = find_row(gpu, tile_bytes);
    if (row == NULL) {
        return -ENODEV;
    }
    *out_row = *row;
    return 0;
}

int wic_transfer_plan_choose(const struct wic_gpu *gpu, const struct wic_tile_shape *shape,
                             const struct wic_work *work, struct wic_transfer_plan *out_plan)
{
    wic_stay_forget();
    if (gpu == NULL || !is_shape(shape)) {
        return refuse_shape();
    }
    const struct wic_transfer_row *row = find_row(gpu, shape->slot_bytes);
    return row != NULL ? wic_transfer_plan_by(gpu, shape, work, row, out_plan) : refuse_gpu(gpu);
}

int wic_transfer_plan_by(const struct wic_gpu *gpu, const struct wic_tile_shape *shape,
                         const struct wic_work *work, const struct wic_transfer_row *row,
                         struct wic_transfer_plan *out_plan)
{
    wic_stay_forget();
    work = work ? work : &no_work;
    if (!is_valid(gpu, work, out_plan) || !is_shape(shape) || !wic_transfer_row_is_valid(row)) {
        return refuse_shape();
    }
    size_t granule = granule_of(shape);
    size_t tile_units = (shape->slot_bytes + shape->in_unit - 1) / shape->in_unit;
    size_t longest = (tile_units + granule - 1) / granule * granule;
    size_t units = row->piece / shape->in_unit / granule * granule;
    size_t most = INT32_MAX / (shape->out_unit + 1) / granule * granule; /* of results together */
    units = units < most ? units : most;
    if (units == 0) {
        units = granule;
    }
    struct wic_transfer_plan plan = {
        .transport = pull_of(gpu), .in_unit = shape->in_unit, .out_unit = shape->out_unit};
    set_work(&plan, row, work);
    if (shape->out_unit == 0) {
        plan.results = WIC_PUSH_STORES;
    }
    set_piece(&plan, units < longest ? units : longest, tile_units);
    int rc = fit(&plan, gpu, row, work, granule, tile_units);
    if (rc == 0) {
        *out_plan = plan;
    }
    return rc;
}

/* A plan of pieces that are not pulled one after the other. */
static int make_whole(const struct wic_gpu *gpu, enum wic_transport transport, uint32_t pieces,
                      const struct wic_work *work, struct wic_transfer_plan *out_plan)
{
    const struct wic_transfer_row *row = find_row(gpu, 0);
    if (row == NULL) {
        return refuse_gpu(gpu);
    }
    struct wic_transfer_plan plan = {.transport = transport, .piece_units = 1, .pieces = pieces};
    set_work(&plan, row, work);
    plan.results = WIC_PUSH_STORES;
    uint32_t percent = work->blocks ? 100 * work->blocks : 100;
    while (percent > 0 && !fits(&plan, gpu, percent / 100)) {
        percent -= 100;
    }
    if (percent == 0) {
        return wic_stay_refuse(-E2BIG, "a block needs %u bytes of shared memory, and %s has %u",
                               wic_transfer_plan_shared_bytes(&plan), gpu->name,
                               gpu->shared_block_bytes);
    }
    set_blocks(&plan, gpu, percent, UINT32_MAX);
    *out_plan = plan;
    return 0;
}

int wic_transfer_plan_whole(const struct wic_gpu *gpu, enum wic_transport transport, uint32_t units,
                            const struct wic_work *work, struct wic_transfer_plan *out_plan)
{
    wic_stay_forget();
    work = work ? work : &no_work;
    if (!is_valid(gpu, work, out_plan) || units == 0 || transport < WIC_COPY) {
        return refuse_shape();
    }
    return make_whole(gpu, transport, units, work, out_plan);
}

int wic_transfer_plan_tiles(const struct wic_gpu *gpu, const struct wic_tile_way *way,
                            const struct wic_tile_grid *grid, const struct wic_work *work,
                            struct wic_transfer_plan *out_plan)
{
    wic_stay_forget();
    work = work ? work : &no_work;
    const uint64_t tiles = (uint64_t)grid->rows * grid->cols;
    const bool engine = way->transport == WIC_COPY;
    const bool known = engine || way->transport == WIC_PULL_LOADS || way->transport == WIC_IN_PLACE;
    if (!is_valid(gpu, work, out_plan) || !known || tiles == 0 || tiles > INT32_MAX ||
        (unsigned)way->order >= WIC_ORDERS || way->batch > tiles || engine != (way->batch > 0)) {
        return wic_stay_refuse(-EINVAL,
                               "tiles of a grid are copied by engines in batches of 1 to %llu, or "
                               "loaded or read in place without batches; work has up to %u warps",
                               (unsigned long long)tiles, 32 - WIC_SERVICE_WARPS);
    }
    struct wic_transfer_plan plan;
    int rc = make_whole(gpu, way->transport, (uint32_t)tiles, work, &plan);
    if (rc == 0) {
        plan.order = way->order;
        plan.batch = way->batch;
        plan.engine_backlog = 0;
        *out_plan = plan;
    }
    return rc;
}

uint32_t wic_transfer_plan_shared_bytes(const struct wic_transfer_plan *plan)
{
    uint32_t piece = plan->in_piece + (plan->results == WIC_PUSH_BULK ? plan->out_piece : 0);
    return WIC_STAGES_OFFSET + plan->depth * piece + plan->work_bytes;
}

const char *wic_transport_name(enum wic_transport transport)
{
    static const char *const names[] = {"pull by bulk copy", "pull by cp.async", "pull by loads",
                                        "copy engines both ways", "in place"};
    return names[transport];
}

int wic_transfer_plan_print(const struct wic_transfer_plan *plan, char *text, size_t bytes)
{
    char pieces[96];
    if (plan->in_piece > 0) {
        (void)snprintf(pieces, sizeof(pieces), "pieces of %u bytes, %u deep", plan->in_piece,
                       plan->depth);
    } else if (plan->batch > 0) {
        (void)snprintf(pieces, sizeof(pieces), "%u tiles by %s, %u a copy", plan->pieces,
                       wic_order_name(plan->order), plan->batch);
    } else {
        (void)snprintf(pieces, sizeof(pieces), "%u pieces a tile", plan->pieces);
    }
    return snprintf(text, bytes, "%s, %s, %u blocks of %u + %u warps, %u bytes shared memory each",
                    wic_transport_name(plan->transport), pieces, plan->blocks, plan->warps,
                    WIC_SERVICE_WARPS, wic_transfer_plan_shared_bytes(plan));
}
