/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The CPU executor: each thread runs the whole chain on one tile at a time, with its own
 * scratch memory. Tile workers (tile_worker.c) compute a tile where they have read it; for the
 * readers and writers of another process, tiles move from channel to channel. */
#include "pipeline/device/mem.h"
#include "pipeline/plan/engine.h"
#include "config/base/clock.h"
#include "pipeline/run/stream/stream.h"
#include "pipeline/profile/work.h"

#include <stdlib.h>

struct exec_cpu {
    struct pb_stream *stream;
    uint32_t threads;
    size_t scratch_bytes; /* bytes for one thread, page-aligned */
    uint8_t *scratch;
};

static void exec_destroy(void *exec)
{
    struct exec_cpu *e = exec;
    if (e == NULL)
        return;
    pb_mem_free(PB_MEM_HOST, e->scratch, e->scratch_bytes * e->threads);
    free(e);
}

static int exec_create(struct pb_stream *stream, struct pb_err *err, void **out_exec)
{
    struct exec_cpu *e = calloc(1, sizeof *e);
    if (e == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    e->stream = stream;
    e->threads = stream->plan->layout.workers;
    e->scratch_bytes = (stream->plan->layout.scratch_bytes + 4095) / 4096 * 4096;
    void *scratch = NULL;
    int rc = pb_mem_alloc(PB_MEM_HOST, e->scratch_bytes * e->threads, err, &scratch);
    if (rc < 0) {
        free(e);
        return rc;
    }
    e->scratch = scratch;
    *out_exec = e;
    return 0;
}

static uint32_t exec_threads(const void *exec)
{
    return ((const struct exec_cpu *)exec)->threads;
}

int pb_exec_cpu_tile(void *exec, uint32_t thread, const struct pb_tile *tile, void *in, void *out,
                     struct pb_err *err)
{
    struct exec_cpu *e = exec;
    struct pb_stream *s = e->stream;
    struct pb_tile_in source;
    struct pb_tile_out target = {.data = out, .plane_px = pb_tile_out_px(tile)};
    pb_slot_tile(&s->plan->layout.format, tile, in, &source);
    uint64_t start = pb_clock_mono_ns();
    pb_work_begin(PB_WORK_COMPUTE, tile->number);
    int rc = pb_chain_run_cpu(s->plan->work.chain, &source, &target,
                              e->scratch + e->scratch_bytes * thread);
    pb_work_end();
    atomic_fetch_add(&s->compute.busy_ns, pb_clock_mono_ns() - start);
    atomic_fetch_add(&s->compute.tiles, 1);
    atomic_fetch_add(&s->compute.bytes, pb_plan_out_bytes(s->plan, tile));
    return rc < 0 ? pb_fail(err, PB_E_SYSTEM,
                            "tile %u does not fit its plan; please report the input", tile->number)
                  : 0;
}

/* Computes one tile from channel to channel; 0, or the negative errno that ends this thread. *err
 * is filled if this thread caused it. */
static int exec_tile(struct exec_cpu *e, uint32_t thread, struct pb_err *err)
{
    struct pb_stream *s = e->stream;
    struct wic_slot in, out;
    pb_work_begin(PB_WORK_WAIT, 0);
    int rc = wic_wait(s->in, WIC_FOREVER, &in);
    rc = rc ? rc : pb_stream_arrived(s, in.user, err);
    rc = rc ? rc : wic_acquire(s->out, WIC_FOREVER, &out);
    pb_work_end();
    if (rc != 0)
        return rc;
    struct pb_tile *tile = out.user;
    *tile = *(const struct pb_tile *)in.user;
    rc = pb_exec_cpu_tile(e, thread, tile, in.data, out.data, err);
    rc = rc ? rc : wic_release(s->in, &in);
    return rc ? rc : wic_publish(s->out, &out, pb_plan_out_bytes(s->plan, tile));
}

static void exec_run(void *exec, uint32_t thread)
{
    struct exec_cpu *e = exec;
    struct pb_err err = {0};
    int rc;
    while ((rc = exec_tile(e, thread, &err)) == 0)
        ;
    pb_stream_thread_ended(e->stream, rc, &err);
}

const struct pb_exec_type pb_exec_cpu = {
    .sync = "wic",
    .create = exec_create,
    .run = exec_run,
    .threads = exec_threads,
    .destroy = exec_destroy,
};
