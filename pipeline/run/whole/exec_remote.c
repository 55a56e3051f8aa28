/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Executor of a pass whose tiles the process that owns the device computes: one thread waits for
 * the end of the session. If that process decodes blocks, too, it makes the same map from the
 * request (run/served/said_blocks.h), and the readers send stored blocks. It has no file: a block
 * that its device refuses is decoded here, to get an error text. */
#include "pipeline/run/whole/whole_inside.h"

#include <stdio.h>
#include <stdlib.h>

struct remote {
    struct pb_stream *stream;
    struct pb_exec_whole *e; /* the readers use their part of it; NULL: they send pixels */
    struct pb_remote_end end;
};

static void exec_destroy(void *exec)
{
    struct remote *r = exec;
    whole_close(r->e);
    free(r);
}

static int exec_create(struct pb_stream *stream, struct pb_err *err, void **out_exec)
{
    struct remote *r = calloc(1, sizeof *r);
    int rc = 0;
    if (r == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    r->stream = stream;
    if (stream->plan->engine.whole.used && whole_rounds_take_units(stream) != 0)
        rc = pb_fail(err, PB_E_SYSTEM, "the scene's tiles cannot all be queued together");
    if (rc == 0 && stream->plan->engine.whole.used)
        rc = whole_open(stream, err, &r->e);
    if (rc == 0)
        *out_exec = r;
    else
        exec_destroy(r);
    return rc;
}

static uint32_t exec_threads(const void *exec)
{
    (void)exec;
    return 1;
}

static void exec_read(void *exec, uint32_t reader)
{
    struct remote *r = exec;
    if (r->e != NULL)
        whole_read(r->e, reader);
    else
        pb_reader_run(r->stream, reader);
}

/* Finds the error text for the block that the device refuses, if the error is about one. */
static void find_words(const struct remote *r, struct pb_err *err)
{
    unsigned source = 0;
    unsigned long long block = 0;
    const struct pb_stream *s = r->stream;
    struct pb_raster *raster = NULL;
    struct pb_err own = {0};
    const void *data;
    if (r->e == NULL || err->code != PB_E_INPUT_DAMAGED ||
        sscanf(err->msg, WHOLE_REFUSED, &source, &block) != 2 ||
        source >= s->plan->work.n_sources || block >= r->e->source[source].blocks.n)
        return;
    int rc = pb_raster_open_again(s->raster[source], s->limits, &own, &raster);
    rc = rc ? rc : pb_raster_decode_block(raster, block, &own, &data);
    pb_raster_close(raster);
    if (rc == 0)
        (void)pb_fail(&own, PB_E_DEVICE_FAILED,
                      "the GPU refuses block %llu of source %u, which the host decodes", block,
                      source);
    *err = own;
}

static void exec_run(void *exec, uint32_t thread)
{
    struct remote *r = exec;
    struct pb_stream *s = r->stream;
    struct pb_stage_counter *c = &s->compute;
    struct pb_err err = {0};
    (void)thread;
    int rc = s->remote->wait(s->remote->user, s->session, &err, &r->end);
    atomic_fetch_add(&c->busy_ns, r->end.busy_ns);
    atomic_fetch_add(&c->parked_ns, r->end.parked_ns);
    atomic_fetch_add(&c->tiles, r->end.tiles);
    atomic_fetch_add(&c->bytes, r->end.bytes);
    if (rc == 0)
        return;
    find_words(r, &err);
    pb_stream_fail(s, &err);
}

static void exec_keep(void *exec)
{
    struct remote *r = exec;
    if (r->e != NULL)
        whole_keep(r->e);
}

static void exec_link(const void *exec, struct pb_link_report *out)
{
    const struct remote *r = exec;
    *out = r->end.link;
    if (r->e != NULL)
        whole_count_blocks(r->e, &out->device);
}

static uint32_t exec_stored(const void *exec)
{
    return ((const struct remote *)exec)->stream->session->n_stored;
}

const struct pb_exec_type pb_exec_remote = {
    .create = exec_create,
    .read = exec_read,
    .run = exec_run,
    .threads = exec_threads,
    .destroy = exec_destroy,
    .link = exec_link,
    .keep = exec_keep,
    .counts_parked = true,
    .stored = exec_stored,
};
