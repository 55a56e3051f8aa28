/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The CPU executor: each thread runs the whole chain on one tile at a time, with scratch of its
 * own. */
#include "pipeline/mem.h"
#include "pipeline/stream.h"

#include <errno.h>
#include <stdlib.h>

struct exec_cpu {
    struct pb_stream *stream;
    uint32_t threads;
    size_t scratch_bytes; /* of one thread, page-aligned */
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
    e->threads = stream->plan->workers;
    e->scratch_bytes = (stream->plan->scratch_bytes + 4095) / 4096 * 4096;
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

static int compute_tile(struct pb_stream *s, const struct wic_slot *in, struct wic_slot *out,
                        void *scratch)
{
    const struct pb_slot_tile *tile = in->user;
    size_t bytes = pb_stream_tile_out(s->plan, tile, out->user);
    struct pb_tile_in source = pb_stream_tile_in(s->plan, tile, in->data);
    struct pb_tile_out target = {.data = out->data,
                                 .plane_px = ((struct pb_slot_tile *)out->user)->plane_px};
    uint64_t start = pb_now_ns();
    int rc = pb_chain_run_cpu(s->plan->chain, &source, &target, scratch);
    atomic_fetch_add(&s->compute.busy_ns, pb_now_ns() - start);
    atomic_fetch_add(&s->compute.tiles, 1);
    atomic_fetch_add(&s->compute.bytes, bytes);
    out->bytes = bytes;
    return rc;
}

static void exec_run(void *exec, uint32_t thread)
{
    struct exec_cpu *e = exec;
    struct pb_stream *s = e->stream;
    void *scratch = e->scratch + e->scratch_bytes * thread;
    struct wic_slot in, out;
    while (wic_wait(s->in, WIC_FOREVER, &in) == 0 && wic_acquire(s->out, WIC_FOREVER, &out) == 0) {
        struct pb_err err = {0};
        if (compute_tile(s, &in, &out, scratch) < 0) {
            (void)pb_fail(&err, PB_E_SYSTEM,
                          "tile %u does not fit its plan; please report the input",
                          ((struct pb_slot_tile *)in.user)->tile);
            pb_stream_fail(s, &err);
            return;
        }
        (void)wic_release(s->in, &in);
        (void)wic_publish(s->out, &out, out.bytes);
    }
}

const struct pb_exec_type pb_exec_cpu = {"cpu", exec_create, exec_run, exec_threads, exec_destroy};
