/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/batch_stream.h"
#include "pipeline/plan/engine.h"

#include "kernels/chain/chain_cuda.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH_BYTES ((size_t)8 << 20) /* bytes of input; or one tile */

enum { LANES_MAX = 8, TILES_MAX = 64 };

/* A batch and what it needs on the device. */
struct lane {
    cudaStream_t stream;
    cudaEvent_t copied, finished;
    struct pb_chain_cuda *chain;
    unsigned char *in, *out;
    struct wic_slot from[TILES_MAX], to[TILES_MAX];
    uint32_t tiles;
};

struct batcher {
    struct pb_stream *stream;
    size_t in_stride, out_stride;
    uint32_t most; /* tiles of a batch */
    uint32_t n_lanes;
    struct lane lane[LANES_MAX];
    struct wic_channel *flights; /* a slot a lane: from the feeder to the finisher */
    void *flights_memory;
};

static void must(int rc, const char *what)
{
    if (rc != 0) {
        (void)fprintf(stderr, "batching stream: %s: %s\n", what,
                      rc > 0 ? cudaGetErrorString((cudaError_t)rc) : "failed");
        exit(1);
    }
}

static int create(struct pb_stream *stream, struct pb_err *err, void **out_exec)
{
    struct batcher *b = calloc(1, sizeof *b);
    const struct pb_plan *plan = stream->plan;
    (void)err;
    must(b == NULL ? -1 : 0, "memory");
    b->stream = stream;
    b->n_lanes = plan->layout.workers < LANES_MAX ? plan->layout.workers : LANES_MAX;
    b->in_stride = wic_slot_stride(plan->layout.in_slot_bytes);
    b->out_stride = wic_slot_stride(plan->layout.out_slot_bytes);
    size_t most = BATCH_BYTES / b->in_stride;
    b->most = (uint32_t)(most < 1 ? 1 : most > TILES_MAX ? TILES_MAX : most);
    must((int)cudaSetDevice(plan->engine.device_index), "the device");
    for (uint32_t i = 0; i < b->n_lanes; i++) {
        struct lane *l = &b->lane[i];
        const unsigned flags = cudaEventDisableTiming;
        must((int)cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking), "a stream");
        must((int)cudaEventCreateWithFlags(&l->copied, flags), "an event");
        must((int)cudaEventCreateWithFlags(&l->finished, flags), "an event");
        must((int)cudaMalloc((void **)&l->in, b->most * b->in_stride), "device memory");
        must((int)cudaMalloc((void **)&l->out, b->most * b->out_stride), "device memory");
        must(pb_chain_cuda_create(plan->work.chain, plan->layout.grid.side_px,
                                  plan->layout.grid.side_px, &l->chain),
             "the chain");
    }
    struct wic_options options = {.slots = b->n_lanes, .slot_bytes = 64};
    b->flights_memory = aligned_alloc(64, (wic_channel_bytes(&options) + 63) / 64 * 64);
    must(b->flights_memory == NULL ? -1
                                   : wic_channel_init(b->flights_memory, &options, &b->flights),
         "a channel");
    *out_exec = b;
    return 0;
}

static void destroy(void *exec)
{
    struct batcher *b = exec;
    for (uint32_t i = 0; i < b->n_lanes; i++) {
        struct lane *l = &b->lane[i];
        must((int)cudaStreamSynchronize(l->stream), "the end");
        pb_chain_cuda_destroy(l->chain);
        (void)cudaFree(l->in);
        (void)cudaFree(l->out);
        (void)cudaEventDestroy(l->copied);
        (void)cudaEventDestroy(l->finished);
        (void)cudaStreamDestroy(l->stream);
    }
    wic_channel_fini(b->flights);
    free(b->flights_memory);
    free(b);
}

/* Returns true if the next tile follows these in memory, in both rings. */
static bool goes_on(const struct batcher *b, const struct lane *l)
{
    const struct pb_plan *plan = b->stream->plan;
    return l->tiles < b->most && l->from[l->tiles - 1].index + 1 < plan->layout.in_slots &&
           l->to[l->tiles - 1].index + 1 < plan->layout.out_slots;
}

/* Waits for one tile and takes what else is ready. */
static int gather(struct batcher *b, struct lane *l)
{
    struct pb_stream *s = b->stream;
    l->tiles = 0;
    int rc = wic_wait(s->in, WIC_FOREVER, &l->from[0]);
    while (rc == 0) {
        const struct pb_tile *tile = l->from[l->tiles].user;
        rc = wic_acquire(s->out, WIC_FOREVER, &l->to[l->tiles]);
        if (rc != 0)
            break;
        *(struct pb_tile *)l->to[l->tiles].user = *tile;
        l->to[l->tiles].bytes = pb_plan_out_bytes(s->plan, tile);
        l->tiles++;
        rc = goes_on(b, l) ? wic_wait(s->in, 0, &l->from[l->tiles]) : -1;
    }
    return l->tiles > 0 ? 0 : rc;
}

/* Tiles of the same length with one copy. */
static void copy(const struct lane *l, bool to_device, size_t stride)
{
    const struct wic_slot *slot = to_device ? l->from : l->to;
    unsigned char *device = to_device ? l->in : l->out;
    for (uint32_t i = 0, n; i < l->tiles; i += n) {
        for (n = 1; i + n < l->tiles && slot[i + n].bytes == slot[i].bytes; n++)
            ;
        unsigned char *at = device + i * stride;
        must((int)cudaMemcpy2DAsync(to_device ? at : slot[i].data, stride,
                                    to_device ? slot[i].data : at, stride, slot[i].bytes, n,
                                    to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                                    l->stream),
             "a copy");
    }
}

static void launch(const struct batcher *b, struct lane *l)
{
    const struct pb_plan *plan = b->stream->plan;
    copy(l, true, b->in_stride);
    must((int)cudaEventRecord(l->copied, l->stream), "an event");
    for (uint32_t i = 0; i < l->tiles; i++) {
        const struct pb_tile *tile = l->from[i].user;
        struct pb_tile_in in;
        struct pb_tile_out out = {.data = (void *)(l->out + i * b->out_stride),
                                  .plane_px = pb_tile_out_px(tile)};
        pb_slot_tile(&plan->layout.format, tile, l->in + i * b->in_stride, &in);
        must(pb_chain_cuda_launch(l->chain, &in, &out, l->stream), "a kernel");
    }
    copy(l, false, b->out_stride);
    must((int)cudaEventRecord(l->finished, l->stream), "an event");
}

static void feed(struct batcher *b)
{
    struct wic_slot slot;
    while (wic_acquire(b->flights, WIC_FOREVER, &slot) == 0 &&
           gather(b, &b->lane[slot.index]) == 0) {
        launch(b, &b->lane[slot.index]);
        (void)wic_publish(b->flights, &slot, 0);
    }
    (void)wic_publish(b->flights, &slot, 0); /* without a tile: the end */
}

static void finish(struct batcher *b)
{
    struct pb_stream *s = b->stream;
    struct wic_slot slot;
    while (wic_wait(b->flights, WIC_FOREVER, &slot) == 0 && b->lane[slot.index].tiles > 0) {
        struct lane *l = &b->lane[slot.index];
        must((int)cudaEventSynchronize(l->copied), "copying tiles in");
        for (uint32_t i = 0; i < l->tiles; i++)
            (void)wic_release(s->in, &l->from[i]);
        must((int)cudaEventSynchronize(l->finished), "computing tiles");
        for (uint32_t i = 0; i < l->tiles; i++)
            (void)wic_publish(s->out, &l->to[i], l->to[i].bytes);
        (void)wic_release(b->flights, &slot);
    }
}

static void run(void *exec, uint32_t thread)
{
    struct batcher *b = exec;
    must((int)cudaSetDevice(b->stream->plan->engine.device_index), "the device");
    if (thread == 0)
        feed(b);
    else
        finish(b);
}

static uint32_t threads(const void *exec)
{
    (void)exec;
    return 2;
}

const struct pb_exec_type batch_stream = {
    .sync = "stream", .create = create, .run = run, .threads = threads, .destroy = destroy};
