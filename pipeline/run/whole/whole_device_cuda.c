/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Queues are streams. open and memory() create everything, before the first tile: calls that
 * synchronise the device would wait for the work of other jobs of the process. */
#include "pipeline/run/whole/whole_device.h"

#include "config/base/clock.h"
#include "pipeline/device/cuda_err.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/layout.h"
#include "pipeline/run/stream/stream_sums.h"

#include "kernels/chain/chain_cuda.h"
#include "wic/device/pause.h"

#include <stdlib.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

enum { MEMORIES_MAX = 2048, NAP_NS = 10000 };

struct cuda {
    const struct pb_plan *plan;
    struct pb_whole_counts counts;
    cudaStream_t *queue;
    cudaEvent_t *event;
    cudaEvent_t start;            /* zero of the clock */
    struct pb_chain_cuda **chain; /* indexed by lane; NULL if tiles are summed up */
    struct pb_stream_sums *sums;  /* NULL: they are not */
    struct pb_chain_cuda *gate;   /* NULL: no gate */
    void *memory[MEMORIES_MAX], *table[MEMORIES_MAX];
    uint32_t n_memories, n_tables;
};

static int use(void *device, struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_err(err, cudaSetDevice(c->plan->engine.device_index), "selecting the device");
}

/* Waits at most a second until the work of the queue is done; true if it is. A lost context has no
 * work. */
static bool is_idle(cudaStream_t queue)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    for (uint64_t end = pb_clock_mono_ns() + SECOND_NS; pb_clock_mono_ns() < end;
         nanosleep(&nap, NULL)) {
        if (cudaStreamQuery(queue) != cudaErrorNotReady)
            return true;
        (void)cudaGetLastError();
    }
    return cudaStreamQuery(queue) != cudaErrorNotReady;
}

static void free_all(struct cuda *c)
{
    for (uint32_t i = 0; c->chain != NULL && i < c->counts.lanes; i++)
        pb_chain_cuda_destroy(c->chain[i]);
    pb_stream_sums_destroy(c->sums);
    pb_chain_cuda_destroy(c->gate);
    for (uint32_t i = 0; i < c->n_memories; i++)
        (void)cudaFree(c->memory[i]);
    for (uint32_t i = 0; i < c->n_tables; i++)
        (void)cudaFreeHost(c->table[i]);
    for (uint32_t i = 0; c->event != NULL && i < c->counts.events; i++)
        if (c->event[i] != NULL)
            (void)cudaEventDestroy(c->event[i]);
    if (c->start != NULL)
        (void)cudaEventDestroy(c->start);
    for (uint32_t i = 0; c->queue != NULL && i < c->counts.queues; i++)
        if (c->queue[i] != NULL)
            (void)cudaStreamDestroy(c->queue[i]);
}

static void close_device(void *device)
{
    struct cuda *c = device;
    if (c == NULL)
        return;
    (void)cudaSetDevice(c->plan->engine.device_index);
    for (uint32_t i = 0; c->queue != NULL && i < c->counts.queues; i++)
        if (c->queue[i] != NULL && !pb_device_left_behind() && !is_idle(c->queue[i]))
            pb_device_leave_behind();
    if (wic_gpu_pause(WIC_GPU_PAUSE_NS) < 0)
        pb_device_leave_behind();
    if (!pb_device_left_behind())
        free_all(c);
    wic_gpu_resume();
    free(c->chain);
    free(c->event);
    free(c->queue);
    free(c);
}

static int make_queues(struct cuda *c, struct pb_err *err)
{
    int least = 0, most = 0;
    int rc =
        pb_cuda_err(err, cudaDeviceGetStreamPriorityRange(&least, &most), "querying priorities");
    for (uint32_t i = 0; i < c->counts.queues && rc == 0; i++) {
        const bool slow = i - c->counts.first_slow < c->counts.n_slow;
        rc = pb_device_stream(slow ? least : most, &c->queue[i], err);
    }
    for (uint32_t i = 0; i < c->counts.events && rc == 0; i++)
        rc = pb_cuda_err(err, cudaEventCreate(&c->event[i]), "creating an event");
    rc = rc ? rc : pb_cuda_err(err, cudaEventCreate(&c->start), "creating an event");
    rc = rc ? rc : pb_cuda_err(err, cudaEventRecord(c->start, c->queue[0]), "recording an event");
    if (rc == 0 && c->plan->layout.sums.chain.n > 0)
        return pb_stream_sums_create(c->plan, c->counts.lanes, 0, err, &c->sums);
    for (uint32_t i = 0; i < c->counts.lanes && rc == 0; i++)
        rc = pb_cuda_rc(err,
                        pb_chain_cuda_create(c->plan->work.chain, c->plan->layout.grid.side_px,
                                             c->plan->layout.grid.side_px, &c->chain[i]),
                        "uploading the chain");
    return rc;
}

static int make_gate(struct cuda *c, struct pb_err *err)
{
    const struct pb_plan *plan = c->plan;
    if (plan->layout.gate.chain == NULL)
        return 0;
    const struct pb_rect most = pb_plan_gate_most(plan);
    return pb_cuda_rc(err, pb_chain_cuda_create(plan->layout.gate.chain, most.w, most.h, &c->gate),
                      "uploading the gate");
}

static int open_device(const struct pb_plan *plan, const struct pb_whole_counts *counts,
                       struct pb_err *err, void **out_device)
{
    struct cuda *c = calloc(1, sizeof *c);
    if (c == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    c->plan = plan;
    c->counts = *counts;
    c->queue = calloc(counts->queues, sizeof(cudaStream_t));
    c->event = calloc(counts->events, sizeof(cudaEvent_t));
    c->chain = calloc(counts->lanes, sizeof(struct pb_chain_cuda *));
    int rc = 0;
    if (c->queue == NULL || c->event == NULL || c->chain == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    rc = rc ? rc : pb_device_use(plan->engine.device_index, err);
    rc = rc ? rc : make_queues(c, err);
    rc = rc ? rc : make_gate(c, err);
    if (rc < 0) {
        close_device(c);
        return rc;
    }
    *out_device = c;
    return 0;
}

static int take(void **list, uint32_t *n, void *memory, struct pb_err *err)
{
    if (*n == MEMORIES_MAX)
        return pb_fail(err, PB_E_SYSTEM, "the executor takes more memories than it may");
    list[(*n)++] = memory;
    return 0;
}

static int take_memory(void *device, size_t bytes, struct pb_err *err, void **out)
{
    struct cuda *c = device;
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, bytes > 0 ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        wic_gpu_free_all(); /* frees memory of jobs that have ended */
        error = cudaMalloc(&memory, bytes > 0 ? bytes : 1);
    }
    int rc = pb_cuda_err(err, error, "allocating memory for blocks");
    rc = rc ? rc : take(c->memory, &c->n_memories, memory, err);
    *out = memory;
    return rc;
}

static int take_table(void *device, size_t bytes, struct pb_err *err, void **out)
{
    struct cuda *c = device;
    void *memory = NULL;
    const size_t takes = bytes > 0 ? bytes : 1;
    int rc = pb_cuda_pin_err(err, cudaHostAlloc(&memory, takes, cudaHostAllocMapped), takes,
                             "the lists of blocks");
    rc = rc ? rc : take(c->table, &c->n_tables, memory, err);
    *out = memory;
    return rc;
}

static int take_managed(void *device, size_t bytes, struct pb_err *err, void **out)
{
    struct cuda *c = device;
    void *memory = NULL;
    int rc =
        pb_cuda_err(err, cudaMallocManaged(&memory, bytes > 0 ? bytes : 1, cudaMemAttachGlobal),
                    "allocating managed memory for planes");
    rc = rc ? rc : take(c->memory, &c->n_memories, memory, err);
    *out = memory;
    return rc;
}

static int move(void *device, uint32_t queue, void *memory, size_t bytes, bool to_device,
                struct pb_err *err)
{
    const struct cuda *c = device;
    const struct cudaMemLocation place = {.type = to_device ? cudaMemLocationTypeDevice
                                                            : cudaMemLocationTypeHost,
                                          .id = to_device ? c->plan->engine.device_index : 0};
    return pb_cuda_err(err, cudaMemPrefetchAsync(memory, bytes, place, 0, c->queue[queue]),
                       "moving planes");
}

static void keep(void *device, void *memory)
{
    struct cuda *c = device;
    for (uint32_t i = 0; i < c->n_memories; i++)
        if (c->memory[i] == memory) {
            c->memory[i] = c->memory[--c->n_memories];
            return;
        }
}

/* Memory that no job uses any more. */
struct dropped {
    int32_t device_index;
    void *memory;
};

static void free_dropped(void *user)
{
    struct dropped *dropped = user;
    (void)cudaSetDevice(dropped->device_index);
    if (!pb_device_left_behind())
        (void)cudaFree(dropped->memory);
    free(dropped);
}

static void drop(int32_t device_index, void *memory, uint64_t bytes)
{
    struct dropped *dropped = malloc(sizeof *dropped);
    if (dropped == NULL) {
        pb_device_leave_behind();
        return;
    }
    *dropped = (struct dropped){device_index, memory};
    wic_gpu_free_later(free_dropped, dropped, (size_t)bytes);
}

static int seen(void *device, void *host, struct pb_err *err, void **out)
{
    (void)device;
    return pb_cuda_err(err, cudaHostGetDevicePointer(out, host, 0), "mapping a slot");
}

static int copy(void *device, uint32_t queue, void *to, const void *from, size_t bytes,
                struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_err(err, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, c->queue[queue]),
                       "copying blocks");
}

static int decode(void *device, uint32_t queue, enum pb_device_codec codec,
                  const struct pb_decode_batch *batch, struct pb_err *err)
{
    const struct cuda *c = device;
    const struct pb_decode_back *back = pb_decode_back_of(codec);
    if (back == NULL)
        return pb_fail(err, PB_E_DEVICE_FAILED, "the GPU has no decoder for the scene's codec");
    return pb_cuda_rc(err, back->launch(batch, c->queue[queue]), "starting to decode blocks");
}

static int unpredict(void *device, uint32_t queue, const struct pb_unpredict_form *form,
                     const struct pb_unpredict_block *blocks, uint32_t n, uint32_t rows_most,
                     struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_unpredict_cuda(form, blocks, n, rows_most, c->queue[queue]),
                      "taking pixels out of blocks");
}

static int tile(void *device, uint32_t lane, const struct pb_tile_in *in,
                const struct pb_tile_out *out, struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(
        err, pb_chain_cuda_launch(c->chain[lane], in, out, c->queue[c->counts.first_lane + lane]),
        "starting the kernels of a tile");
}

static int sums(void *device, uint32_t lane, const struct pb_slot_head *head,
                const struct pb_tile_in *in, int32_t *out, struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_stream_sums_tile(c->sums, lane, head, in, out, c->queue[c->counts.first_lane + lane],
                               err);
}

static int gate(void *device, uint32_t queue, const struct pb_tile_in *in,
                const struct pb_tile_out *out, struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_chain_cuda_launch(c->gate, in, out, c->queue[queue]),
                      "starting the gate of a tile");
}

static int passing(void *device, uint32_t queue, const struct pb_statistics_plane *planes,
                   uint32_t n, uint64_t most_px, uint32_t *counts, struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_passing_cuda(planes, n, most_px, counts, c->queue[queue]),
                      "starting to count pixels");
}

static int halve(void *device, uint32_t queue, const struct pb_halve_part *parts, uint32_t n,
                 uint32_t n_planes, int32_t most_rows, bool nearest, struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_halve_cuda(parts, n, n_planes, most_rows, nearest, c->queue[queue]),
                      "starting to make overviews");
}

static int statistics(void *device, uint32_t queue, const struct pb_statistics_plane *planes,
                      uint32_t n, uint64_t most_px, struct pb_statistics_part *parts,
                      struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_statistics_cuda(planes, n, most_px, parts, c->queue[queue]),
                      "starting to find statistics");
}

static int percentiles(void *device, uint32_t queue, struct pb_percentiles *state,
                       const struct pb_statistics_plane *planes, uint32_t n, uint64_t most_px,
                       struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_percentiles_cuda(state, planes, n, most_px, c->queue[queue]),
                      "starting to count values");
}

static int values_begin(void *device, uint32_t queue, struct pb_value_table *table, uint32_t limit,
                        struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_value_table_begin_cuda(table, limit, c->queue[queue]),
                      "starting to clear a table of values");
}

static int values_add(void *device, uint32_t queue, struct pb_value_table *table,
                      struct pb_value_table *spare, const struct pb_value_planes *planes,
                      struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_value_table_add_cuda(table, spare, planes, c->queue[queue]),
                      "starting to count values");
}

static int values_list(void *device, uint32_t queue, struct pb_value_table *table, uint32_t limit,
                       struct pb_value_part *parts, struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_value_table_list_cuda(table, limit, parts, c->queue[queue]),
                      "starting to list values");
}

static int encode(void *device, uint32_t queue, const struct pb_encode_batch *batch,
                  struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_rc(err, pb_encode_cuda(batch, c->queue[queue]), "starting to encode blocks");
}

static int mark(void *device, uint32_t queue, uint32_t event, struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_err(err, cudaEventRecord(c->event[event], c->queue[queue]),
                       "recording an event");
}

static int after(void *device, uint32_t queue, uint32_t event, struct pb_err *err)
{
    const struct cuda *c = device;
    return pb_cuda_err(err, cudaStreamWaitEvent(c->queue[queue], c->event[event], 0),
                       "waiting for an event");
}

static int happened(void *device, uint32_t event, const char *what, struct pb_err *err)
{
    const struct cuda *c = device;
    cudaError_t rc = cudaEventQuery(c->event[event]);
    if (rc == cudaSuccess)
        return 1;
    if (rc != cudaErrorNotReady)
        return pb_cuda_err(err, rc, what);
    (void)cudaGetLastError(); /* clears "not ready", which is not an error */
    return 0;
}

static int when(void *device, uint32_t event, uint64_t *out_ns, struct pb_err *err)
{
    const struct cuda *c = device;
    float ms = 0;
    int rc = pb_cuda_err(err, cudaEventElapsedTime(&ms, c->start, c->event[event]),
                         "reading the time of an event");
    if (rc == 0)
        *out_ns = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    return rc;
}

const struct pb_whole_device pb_whole_cuda = {
    .open = open_device,
    .close = close_device,
    .use = use,
    .memory = take_memory,
    .table = take_table,
    .managed = take_managed,
    .move = move,
    .keep = keep,
    .drop = drop,
    .seen = seen,
    .copy = copy,
    .decode = decode,
    .unpredict = unpredict,
    .tile = tile,
    .sums = sums,
    .gate = gate,
    .passing = passing,
    .halve = halve,
    .encode = encode,
    .statistics = statistics,
    .percentiles = percentiles,
    .values_begin = values_begin,
    .values_add = values_add,
    .values_list = values_list,
    .mark = mark,
    .after = after,
    .happened = happened,
    .when = when,
};
