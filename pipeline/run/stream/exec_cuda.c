/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The CUDA executor: a resident kernel runs the chain; its warps are parked until tiles arrive. In
 * the owner process jobs share one kernel and each chain is a lane of it, if
 * kernels/chain/chain_lanes.cu has a matching kernel; else the chain has its own kernel. The device
 * proxy (wic/device/wic_device.h) connects it with the channels; this file makes the kernel's
 * tables, describes the work for a tile, and reports failures. */
#include "pipeline/device/cuda_err.h"
#include "pipeline/device/device.h"
#include "pipeline/device/lanes.h"
#include "pipeline/device/residency.h"
#include "pipeline/plan/engine.h"
#include "pipeline/run/stream/stream.h"

#include "kernels/chain/chain_resident.h"
#include "wic/device/pause.h"
#include "wic/device/wic_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct exec_cuda {
    struct pb_stream *stream;
    struct pb_chain_resident *chain;
    struct wic_device *device;
    struct wic_device_stats stats; /* totals of the run, once it has ended */
    struct pb_lane *lane;          /* NULL: a kernel of its own */
    bool is_resident;              /* has its own resident kernel */
    struct pb_resident resident;
};

/* Describes the work for a tile. */
static int describe(void *context, const struct wic_slot *in, const struct wic_slot *out,
                    struct wic_device_tile *out_tile)
{
    const struct exec_cuda *e = context;
    const struct pb_plan *plan = e->stream->plan;
    const struct pb_tile *tile = in->user;
    struct pb_err err = {0};
    int rc = pb_stream_arrived(e->stream, tile, &err);
    (void)out;
    if (rc < 0) {
        pb_stream_fail(e->stream, &err);
        return rc;
    }
    out_tile->units = pb_plan_parts(plan, &tile->core);
    out_tile->unit_bytes = pb_plan_part_bytes(plan, tile);
    out_tile->out_bytes = pb_plan_out_bytes(plan, tile);
    return 0;
}

_Static_assert(PB_RESIDENCY_WHOLE == WIC_SHARE_WHOLE, "shares are counted alike");

/* Concurrent with other kernels: at most as many blocks as multiprocessors in its share
 * (lanes_cuda.c). */
static uint32_t enter_alone(struct exec_cuda *e)
{
    const struct pb_plan_resident *r = &e->stream->plan->engine.resident;
    uint32_t share = pb_residency_enter(&e->resident), most = r->gpu.multiprocessors;
    bool spreads = share < PB_RESIDENCY_WHOLE && r->chunks.blocks > most;
    return spreads ? share * most / r->chunks.blocks : share;
}

static uint32_t enter(void *context)
{
    struct exec_cuda *e = context;
    return e->lane != NULL ? pb_lane_enter(e->lane) : enter_alone(e);
}

static void left(void *context)
{
    struct exec_cuda *e = context;
    if (e->lane != NULL)
        pb_lane_left(e->lane);
    else
        pb_residency_left(&e->resident);
}

static bool is_unwanted(void *context)
{
    struct exec_cuda *e = context;
    return e->lane != NULL ? pb_lane_is_unwanted(e->lane) : pb_residency_is_unwanted(&e->resident);
}

/* Ends all work of the run; its memory is freed later. */
static void part(struct exec_cuda *e)
{
    if (e->device != NULL)
        wic_device_stats_get(e->device, &e->stats);
    if (e->is_resident)
        pb_residency_part(&e->resident);
    e->is_resident = false;
    pb_lane_part(e->lane);
    e->lane = NULL;
}

/* A kernel that has not ended still reads its tables and its argument. */
static void exec_destroy(void *exec)
{
    struct exec_cuda *e = exec;
    if (e == NULL)
        return;
    part(e);
    (void)cudaSetDevice(e->stream->plan->engine.device_index);
    bool none = wic_gpu_pause(WIC_GPU_PAUSE_NS) == 0;
    if (!none || (e->device != NULL && wic_device_close(e->device, NULL) == -ETIMEDOUT))
        pb_device_leave_behind();
    if (!pb_device_left_behind())
        pb_chain_resident_destroy(e->chain);
    wic_gpu_resume();
    free(e);
}

/* Error for memory that did not fit: scratch of the blocks, and slots that a copy engine transfers.
 */
static int no_memory(const struct pb_plan *plan, struct pb_err *err)
{
    const struct pb_plan_resident *r = &plan->engine.resident;
    uint64_t scratch = (uint64_t)r->scratch_bytes * r->chunks.blocks;
    bool copied = r->chunks.transport == WIC_COPY;
    uint64_t slots =
        plan->layout.in_slots * (uint64_t)wic_slot_stride(plan->layout.in_slot_bytes) +
        plan->layout.out_slots * (uint64_t)wic_slot_stride(plan->layout.out_slot_bytes);
    return pb_fail(err, PB_E_MEMORY,
                   "CUDA device %d has not enough free memory: the resident kernel takes %llu "
                   "MiB for scratch and %llu MiB for %u slots; lower compute.threads or "
                   "compute.tile, or set compute.sync to stream",
                   plan->engine.device_index, (unsigned long long)(scratch >> 20),
                   (unsigned long long)(copied ? slots >> 20 : 0),
                   copied ? plan->layout.in_slots + plan->layout.out_slots : 0);
}

/* Finds a lane, if the chain may have one. */
static int find_lane(struct exec_cuda *e, struct pb_chain_resident_shape *shape, struct pb_err *err)
{
    const struct pb_plan *plan = e->stream->plan;
    const struct wic_transfer_plan *chunks = &plan->engine.resident.chunks;
    if (!plan->engine.resident.shared)
        return 0;
    int rc = pb_lane_join(shape, chunks, &plan->engine.resident.gpu, plan->work.priority, &e->lane);
    if (rc < 0)
        return rc == -ENOMEM ? no_memory(plan, err)
                             : pb_cuda_rc(err, rc, "making the kernel that jobs share");
    if (e->lane != NULL)
        shape->blocks = pb_lane_blocks(e->lane);
    return 0;
}

static int make_chain(struct exec_cuda *e, struct pb_err *err)
{
    const struct pb_plan *plan = e->stream->plan;
    const struct pb_plan_resident *r = &plan->engine.resident;
    struct pb_chain_resident_shape shape = {
        .px = r->px,
        .scratch_bytes = r->scratch_bytes,
        .plane_px = r->plane_px,
        .blocks = r->chunks.blocks,
        .by_line = r->by_line,
        .part_w = r->part_w,
        .part_h = r->part_h,
        .format = plan->layout.format,
        .sums = plan->layout.sums.chain,
        .places = r->places,
        .tile_bytes = pb_plan_sums_tile_bytes(plan),
        .n_tiles = pb_grid_count(&plan->layout.grid),
    };
    int rc = find_lane(e, &shape, err);
    if (rc < 0)
        return rc;
    rc = pb_chain_resident_create(plan->work.chain, &shape, &e->chain);
    if (rc == -ENOMEM)
        return no_memory(plan, err);
    return pb_cuda_rc(err, rc, "uploading the chain");
}

/* Makes the chain a lane of the kernel that jobs share. */
static void use_lane(struct exec_cuda *e, struct wic_device_options *options)
{
    options->launch = pb_lane_launch(e->lane);
    options->argument_bytes = pb_chain_resident_argument_bytes();
    options->priority = e->stream->plan->work.priority;
}

static int open_device(struct exec_cuda *e, const struct wic_device_options *options)
{
    int rc = wic_device_open(options, &e->device);
    if (rc != -ENOLCK && rc != -ENOMEM)
        return rc;
    wic_gpu_free_all(); /* frees memory and lanes of jobs that have ended */
    return wic_device_open(options, &e->device);
}

/* Also loads the kernel's code: at its first launch that would wait for resident kernels. */
static int make_device(struct exec_cuda *e, struct pb_err *err)
{
    const struct pb_stream *s = e->stream;
    struct wic_device_options options = {
        .in = s->in,
        .out = s->out,
        .plan = s->plan->engine.resident.chunks,
        .kernel = pb_chain_resident_kernel(e->chain),
        .argument = pb_chain_resident_argument(e->chain),
        .describe = describe,
        .context = e,
        .enter = enter,
        .left = left,
        .is_unwanted = is_unwanted,
        .share = pb_device_wic_share(),
        .starts = 1, /* after that the run continues with streams */
    };
    if (e->lane != NULL)
        use_lane(e, &options);
    int rc = open_device(e, &options);
    if (rc == 0 && e->lane == NULL)
        pb_residency_join(&e->resident, s->plan->work.priority);
    e->is_resident = rc == 0 && e->lane == NULL;
    if (rc == -ENOMEM)
        return no_memory(s->plan, err);
    if (rc == -E2BIG || rc == -ENOSPC)
        return pb_fail(err, PB_E_DEVICE_FAILED,
                       "the kernel needs all its %u blocks on the GPU together, and they do not "
                       "fit; set compute.sync to stream",
                       s->plan->engine.resident.chunks.blocks);
    if (rc == -EOPNOTSUPP)
        return pb_fail(err, PB_E_DEVICE_FAILED,
                       "no kernel can stay on the GPU: %.180s; or set compute.sync to stream",
                       wic_link_why());
    return pb_cuda_rc(err, rc, "making the link to the GPU");
}

static int exec_create(struct pb_stream *stream, struct pb_err *err, void **out_exec)
{
    struct exec_cuda *e = calloc(1, sizeof *e);
    if (e == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    e->stream = stream;
    int rc = pb_device_use(stream->plan->engine.device_index, err);
    if (rc == 0)
        rc = make_chain(e, err);
    if (rc == 0)
        rc = make_device(e, err);
    if (rc < 0) {
        exec_destroy(e);
        return rc;
    }
    *out_exec = e;
    return 0;
}

static uint32_t exec_threads(const void *exec)
{
    (void)exec;
    return 1;
}

/* Adds times of the device, not of its proxy thread, which is parked while there is no kernel or
 * the kernel has no work. */
static void count(struct exec_cuda *e)
{
    struct pb_stage_counter *c = &e->stream->compute;
    uint64_t starved = e->stats.starved_ns, stayed = e->stats.resident_ns;
    atomic_fetch_add(&c->busy_ns, stayed > starved ? stayed - starved : 0);
    atomic_fetch_add(&c->parked_ns, e->stats.parked_ns + (starved < stayed ? starved : stayed));
    atomic_fetch_add(&c->tiles, e->stats.tiles);
    atomic_fetch_add(&c->bytes, e->stats.out_bytes);
}

/* Reports any CUDA error as a lost device: after a failed kernel its context is unusable. */
static void lost(const struct exec_cuda *e, struct pb_err *err)
{
    cudaError_t last = cudaGetLastError();
    (void)pb_fail(err, PB_E_DEVICE_LOST,
                  "the kernel that computes tiles on CUDA device %d ended before its time: %s",
                  e->stream->plan->engine.device_index,
                  last != cudaSuccess ? cudaGetErrorString(last) : "CUDA reported no error");
}

/* Sets the message for the error that ended the run. */
static void explain(const struct exec_cuda *e, int rc, struct pb_err *err)
{
    const struct pb_plan *plan = e->stream->plan;
    int32_t device = plan->engine.device_index;
    if (rc == -EBUSY)
        (void)pb_fail(err, PB_E_DEVICE_BUSY,
                      "other programs fill CUDA device %d: the kernel's %u blocks did not get onto "
                      "it within %d ms",
                      device, plan->engine.resident.chunks.blocks,
                      (int)(WIC_LINK_START_NS / 1000000));
    else if (rc == -ETIMEDOUT)
        (void)pb_fail(err, PB_E_DEVICE_LOST,
                      "CUDA device %d hangs: a tile was not done within %d s, or the kernel that "
                      "computes tiles did not leave",
                      device, (int)(WIC_DEVICE_HANG_NS / 1000000000));
    else if (rc == -EIO)
        lost(e, err);
    else if (rc == -ENOMEM || rc == -ENODEV)
        (void)pb_fail(err, rc == -ENOMEM ? PB_E_DEVICE_BUSY : PB_E_DEVICE_FAILED,
                      "CUDA device %d %s while tiles flowed", device,
                      rc == -ENOMEM ? "had no memory left" : "went missing");
    else
        (void)pb_fail(err, PB_E_SYSTEM, "the channels between the stages failed: %s",
                      strerror(-rc));
}

static void exec_run(void *exec, uint32_t thread)
{
    struct exec_cuda *e = exec;
    struct pb_err err = {0};
    (void)thread;
    int rc = wic_device_run(e->device);
    part(e);
    count(e);
    if (rc == 0 || rc == -ECANCELED)
        return;
    explain(e, rc, &err);
    pb_stream_fail(e->stream, &err);
}

static void exec_link(const void *exec, struct pb_link_report *out)
{
    const struct exec_cuda *e = exec;
    *out = (struct pb_link_report){
        .used = true,
        .to_device_bytes = e->stats.in_bytes,
        .from_device_bytes = e->stats.out_bytes,
        .starved_ns = e->stats.starved_ns,
        .leave_ns = e->stats.leave_ns,
        .blocks = e->stats.blocks,
        .launches = e->stats.launches,
    };
    (void)wic_transfer_plan_print(&e->stream->plan->engine.resident.chunks, out->plan,
                                  sizeof out->plan);
}

static uint32_t exec_stored(const void *exec)
{
    return pb_chain_resident_stored(((const struct exec_cuda *)exec)->chain);
}

const struct pb_exec_type pb_exec_cuda = {
    .sync = "wic",
    .create = exec_create,
    .run = exec_run,
    .threads = exec_threads,
    .destroy = exec_destroy,
    .link = exec_link,
    .counts_parked = true,
    .stored = exec_stored,
};
