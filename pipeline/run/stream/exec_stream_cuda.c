/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The executor with one kernel per tile, by streams and events: a feeder thread queues copy in,
 * kernels and copy out of a tile on the next stream; a finisher thread, which polls the oldest
 * tile's events between naps, returns the input slot as soon as it is copied and publishes the
 * output. The two are joined by a channel of their own, one slot per stream: acquiring a slot of it
 * waits for a free stream. */
#include "pipeline/device/cuda_err.h"
#include "pipeline/plan/engine.h"
#include "config/base/clock.h"
#include "pipeline/device/device.h"
#include "pipeline/device/residency.h"
#include "pipeline/run/stream/stream.h"
#include "pipeline/run/stream/stream_sums.h"

#include "kernels/chain/chain_cuda.h"
#include "wic/device/pause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define HANG_NS   (60 * SECOND_NS)

enum { NAP_NS = 10000, THREADS = 2 };

#define CHECK(err, call, what)                                                                     \
    do {                                                                                           \
        int check_rc = pb_cuda_err((err), (call), what);                                           \
        if (check_rc < 0)                                                                          \
            return check_rc;                                                                       \
    } while (0)

/* One tile between feeder and finisher; in the user bytes of the channel of flights. */
struct flight {
    struct wic_slot in, out;
};
_Static_assert(sizeof(struct flight) <= WIC_USER_BYTES, "a flight fits the user bytes");

struct lane {
    cudaStream_t stream;
    cudaEvent_t copied, finished;
    struct pb_chain_cuda *chain; /* NULL if tiles are summed up */
    void *in, *out;              /* device memory */
};

struct exec_stream {
    struct pb_stream *stream;
    int device;
    uint32_t n_lanes;
    struct lane *lanes;
    struct pb_stream_sums *sums; /* NULL: the results are planes */
    struct wic_channel *flights;
    void *flights_memory;
    uint64_t in_bytes, out_bytes; /* transferred over the link; the finisher's */
    uint32_t launched;            /* count of tiles */
    struct pb_resident resident;  /* in use until both threads have ended */
    atomic_uint ended;
};

/* Waits for an event, at most HANG_NS in which no kernel of this process is resident: then
 * device.lost, because the GPU does not answer. Polls, because CUDA has no wait with a limit; the
 * naps are short compared to a tile. */
static int wait_event(cudaEvent_t event, const char *what, struct pb_err *err)
{
    struct wic_gpu_wait wait = {{0, 0}, 0, false};
    const struct timespec nap = {.tv_nsec = NAP_NS};
    cudaError_t rc;
    while ((rc = cudaEventQuery(event)) == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* clears "not ready", which is not an error */
        if (wic_gpu_hangs(&wait, pb_clock_mono_ns(), HANG_NS))
            break;
        nanosleep(&nap, NULL);
    }
    wic_gpu_waited(&wait);
    if (rc != cudaErrorNotReady)
        return pb_cuda_err(err, rc, what);
    return pb_fail(err, PB_E_DEVICE_LOST,
                   "GPU timeout: %s took over %d s; the process must be restarted", what,
                   (int)(HANG_NS / SECOND_NS));
}

/* Waits at most a second until the work of the stream is done; true if it is. A lost context has no
 * work. */
static bool is_idle(cudaStream_t stream)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    for (uint64_t end = pb_clock_mono_ns() + SECOND_NS; pb_clock_mono_ns() < end;
         nanosleep(&nap, NULL)) {
        if (cudaStreamQuery(stream) != cudaErrorNotReady)
            return true;
        (void)cudaGetLastError();
    }
    return cudaStreamQuery(stream) != cudaErrorNotReady;
}

static void lane_fini(struct lane *lane)
{
    pb_chain_cuda_destroy(lane->chain);
    if (lane->in)
        (void)cudaFree(lane->in);
    if (lane->out)
        (void)cudaFree(lane->out);
    if (lane->copied)
        (void)cudaEventDestroy(lane->copied);
    if (lane->finished)
        (void)cudaEventDestroy(lane->finished);
    if (lane->stream)
        (void)cudaStreamDestroy(lane->stream);
}

static int lane_init(struct lane *lane, const struct pb_plan *plan, struct pb_err *err)
{
    const unsigned flags = cudaEventDisableTiming;
    int rc = pb_device_stream(0, &lane->stream, err);
    if (rc < 0)
        return rc;
    CHECK(err, cudaEventCreateWithFlags(&lane->copied, flags), "creating an event");
    CHECK(err, cudaEventCreateWithFlags(&lane->finished, flags), "creating an event");
    CHECK(err, cudaMalloc(&lane->in, plan->layout.in_slot_bytes), "allocating device buffers");
    CHECK(err, cudaMalloc(&lane->out, plan->layout.out_slot_bytes), "allocating device buffers");
    if (plan->layout.sums.chain.n > 0)
        return 0;
    int32_t w, h;
    pb_plan_core_most(plan, &w, &h);
    rc = pb_chain_cuda_create(plan->work.chain, w, h, &lane->chain);
    return pb_cuda_rc(err, rc, "uploading the chain");
}

static void exec_destroy(void *exec)
{
    struct exec_stream *e = exec;
    if (e == NULL)
        return;
    (void)cudaSetDevice(e->device);
    pb_residency_part(&e->resident);
    for (uint32_t i = 0; i < e->n_lanes; i++)
        if (e->lanes[i].stream && !pb_device_left_behind() && !is_idle(e->lanes[i].stream))
            pb_device_leave_behind();
    for (uint32_t i = 0; i < e->n_lanes && !pb_device_left_behind(); i++)
        lane_fini(&e->lanes[i]);
    if (!pb_device_left_behind())
        pb_stream_sums_destroy(e->sums);
    wic_channel_fini(e->flights);
    free(e->flights_memory);
    free(e->lanes);
    free(e);
}

static int init_flights(struct exec_stream *e, struct pb_err *err)
{
    struct wic_options options = {.slots = e->n_lanes, .slot_bytes = 64};
    size_t bytes = (wic_channel_bytes(&options) + 63) / 64 * 64;
    e->flights_memory = aligned_alloc(64, bytes);
    if (e->flights_memory == NULL || wic_channel_init(e->flights_memory, &options, &e->flights) < 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    return 0;
}

static int exec_create(struct pb_stream *stream, struct pb_err *err, void **out_exec)
{
    struct exec_stream *e = calloc(1, sizeof *e);
    const struct pb_plan *plan = stream->plan;
    if (e == NULL || (e->lanes = calloc(plan->layout.workers, sizeof *e->lanes)) == NULL) {
        free(e);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    }
    e->stream = stream;
    e->device = plan->engine.device_index;
    e->n_lanes = plan->layout.workers;
    int rc = pb_device_use(e->device, err);
    for (uint32_t i = 0; i < e->n_lanes && rc == 0; i++)
        rc = lane_init(&e->lanes[i], plan, err);
    if (rc == 0 && plan->layout.sums.chain.n > 0)
        rc = pb_stream_sums_create(plan, e->n_lanes, pb_grid_count(&plan->layout.grid), err,
                                   &e->sums);
    if (rc == 0)
        rc = init_flights(e, err);
    if (rc < 0) {
        exec_destroy(e);
        return rc;
    }
    pb_residency_join_launches(&e->resident, plan->work.priority);
    *out_exec = e;
    return 0;
}

static uint32_t exec_threads(const void *exec)
{
    (void)exec;
    return THREADS;
}

/* Describes a queued tile. */
static struct pb_stream_sums_tile tile_of(const struct lane *lane, const struct flight *f)
{
    return (struct pb_stream_sums_tile){.tile = f->in.user,
                                        .slot = f->in.data,
                                        .bytes = f->in.bytes,
                                        .lane_slot = lane->in,
                                        .out = lane->out};
}

static int send(struct exec_stream *e, struct lane *lane, struct pb_stream_sums_tile *t,
                struct pb_err *err)
{
    if (e->sums != NULL)
        return pb_stream_sums_send(e->sums, t, lane->stream, err);
    CHECK(err,
          cudaMemcpyAsync(t->lane_slot, t->slot, t->bytes, cudaMemcpyHostToDevice, lane->stream),
          "copying a tile in");
    return 0;
}

static int compute(struct exec_stream *e, struct lane *lane, const struct pb_stream_sums_tile *t,
                   void *slot, struct pb_err *err)
{
    if (e->sums != NULL)
        return pb_stream_sums_launch(e->sums, (uint32_t)(lane - e->lanes), t, lane->stream, err);
    struct pb_tile_in source;
    struct pb_tile_out target = {.data = t->out, .plane_px = pb_tile_out_px(t->tile)};
    pb_slot_tile(&e->stream->plan->layout.format, t->tile, slot, &source);
    return pb_cuda_rc(err, pb_chain_cuda_launch(lane->chain, &source, &target, lane->stream),
                      "starting the kernels of a tile");
}

/* Queues all work of one tile; the lane is ours until its flight is released. */
static int launch(struct exec_stream *e, struct lane *lane, struct flight *f, struct pb_err *err)
{
    struct pb_stream_sums_tile t = tile_of(lane, f);
    size_t out_bytes = pb_plan_out_bytes(e->stream->plan, t.tile);
    *(struct pb_tile *)f->out.user = *t.tile;
    f->out.bytes = out_bytes;
    int rc = send(e, lane, &t, err);
    if (rc == 0)
        CHECK(err, cudaEventRecord(lane->copied, lane->stream), "recording an event");
    rc = rc ? rc : compute(e, lane, &t, lane->in, err);
    if (rc < 0)
        return rc;
    CHECK(err,
          cudaMemcpyAsync(f->out.data, lane->out, out_bytes, cudaMemcpyDeviceToHost, lane->stream),
          "copying a tile out");
    CHECK(err, cudaEventRecord(lane->finished, lane->stream), "recording an event");
    return 0;
}

static int feed(struct exec_stream *e, struct pb_err *err)
{
    struct pb_stream *s = e->stream;
    struct wic_slot slot;
    struct flight f;
    int rc;
    while ((rc = wic_wait(s->in, WIC_FOREVER, &f.in)) == 0 &&
           (rc = pb_stream_arrived(s, f.in.user, err)) == 0 &&
           (rc = wic_acquire(s->out, WIC_FOREVER, &f.out)) == 0 &&
           (rc = wic_acquire(e->flights, WIC_FOREVER, &slot)) == 0) {
        uint64_t start = pb_clock_mono_ns();
        rc = launch(e, &e->lanes[slot.index], &f, err);
        if (rc < 0)
            return rc;
        *(struct flight *)slot.user = f;
        atomic_fetch_add(&s->compute.busy_ns, pb_clock_mono_ns() - start);
        rc = wic_publish(e->flights, &slot, 0);
        if (rc < 0)
            break;
    }
    return rc;
}

static int finish(struct exec_stream *e, struct pb_err *err)
{
    struct pb_stream *s = e->stream;
    struct wic_slot slot;
    int rc;
    while ((rc = wic_wait(e->flights, WIC_FOREVER, &slot)) == 0) {
        struct flight f = *(struct flight *)slot.user;
        struct lane *lane = &e->lanes[slot.index];
        rc = wait_event(lane->copied, "copying a tile in", err);
        if (rc < 0)
            return rc;
        rc = wic_release(s->in, &f.in);
        if (rc < 0)
            break;
        rc = wait_event(lane->finished, "computing a tile", err);
        if (rc < 0)
            return rc;
        e->in_bytes += f.in.bytes;
        e->out_bytes += f.out.bytes;
        e->launched++;
        atomic_fetch_add(&s->compute.tiles, 1);
        atomic_fetch_add(&s->compute.bytes, f.out.bytes);
        rc = wic_publish(s->out, &f.out, f.out.bytes);
        if (rc == 0)
            rc = wic_release(e->flights, &slot);
        if (rc < 0)
            break;
    }
    return rc;
}

static void run(struct exec_stream *e, uint32_t thread)
{
    struct pb_err err = {0};
    int rc = pb_cuda_err(&err, cudaSetDevice(e->device), "selecting the device");
    if (rc == 0)
        rc = thread == 0 ? feed(e, &err) : finish(e, &err);
    if (rc == -EPIPE) { /* drained: the finisher continues with tiles in flight */
        wic_close(e->flights);
        return;
    }
    if (rc != -ECANCELED)
        (void)pb_fail(&err, PB_E_SYSTEM, "the channels between the stages failed: %s",
                      strerror(-rc));
    if (err.code != PB_OK)
        pb_stream_fail(e->stream, &err);
    wic_abort(e->flights); /* wakes the other thread of the two */
}

static void exec_run(void *exec, uint32_t thread)
{
    struct exec_stream *e = exec;
    run(e, thread);
    if (atomic_fetch_add(&e->ended, 1) + 1 == THREADS)
        pb_residency_part(&e->resident);
}

static void exec_link(const void *exec, struct pb_link_report *out)
{
    const struct exec_stream *e = exec;
    *out = (struct pb_link_report){.used = true,
                                   .to_device_bytes = e->in_bytes,
                                   .from_device_bytes = e->out_bytes,
                                   .launches = e->launched};
}

static uint32_t exec_stored(const void *exec)
{
    const struct exec_stream *e = exec;
    return e->sums != NULL ? pb_stream_sums_stored(e->sums) : 0;
}

const struct pb_exec_type pb_exec_stream = {
    .sync = "stream",
    .create = exec_create,
    .run = exec_run,
    .threads = exec_threads,
    .destroy = exec_destroy,
    .link = exec_link,
    .stored = exec_stored,
};
