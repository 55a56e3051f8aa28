/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/served/exec_remote.h"

#include <stdlib.h>

struct exec_remote {
    struct pb_stream *stream;
    struct pb_remote_end end;
};

static int exec_create(struct pb_stream *stream, struct pb_err *err, void **out_exec)
{
    struct exec_remote *e = calloc(1, sizeof *e);
    if (e == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    e->stream = stream;
    *out_exec = e;
    return 0;
}

static uint32_t exec_threads(const void *exec)
{
    (void)exec;
    return 1;
}

static void count(struct exec_remote *e)
{
    struct pb_stage_counter *c = &e->stream->compute;
    atomic_fetch_add(&c->busy_ns, e->end.busy_ns);
    atomic_fetch_add(&c->parked_ns, e->end.parked_ns);
    atomic_fetch_add(&c->tiles, e->end.tiles);
    atomic_fetch_add(&c->bytes, e->end.bytes);
}

static void exec_run(void *exec, uint32_t thread)
{
    struct exec_remote *e = exec;
    struct pb_stream *s = e->stream;
    struct pb_err err = {0};
    (void)thread;
    int rc = s->remote->wait(s->remote->user, s->session, &err, &e->end);
    count(e);
    if (rc < 0)
        pb_stream_fail(s, &err);
}

static void exec_destroy(void *exec)
{
    free(exec);
}

static void exec_link(const void *exec, struct pb_link_report *out)
{
    *out = ((const struct exec_remote *)exec)->end.link;
}

static uint32_t exec_stored(const void *exec)
{
    return ((const struct exec_remote *)exec)->stream->session->n_stored;
}

const struct pb_exec_type pb_exec_remote = {
    .sync = "wic",
    .create = exec_create,
    .run = exec_run,
    .threads = exec_threads,
    .destroy = exec_destroy,
    .link = exec_link,
    .counts_parked = true,
    .stored = exec_stored,
};
