/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_WHOLE_LATE_H
#define PB_TEST_WHOLE_LATE_H
/* The device of whole_host.h with queues like those of a GPU: each has a thread that does the
 * queued work in its order, some time later, and waits for events of other queues. Work that needs
 * a result of a queue without having waited for it fails in the checks of whole_host.h, or gives
 * other pixels. The rarely used functions wait until their queue is empty, and do the work at once.
 */
#include "whole_host.h"

#include <unistd.h>

enum { LATE_QUEUES = 64, LATE_OPS = 4096 };

enum late_kind {
    LATE_COPY,
    LATE_DECODE,
    LATE_UNPREDICT,
    LATE_TILE,
    LATE_SUMS,
    LATE_GATE,
    LATE_PASSING,
    LATE_MOVE,
    LATE_MARK,
    LATE_AFTER
};

/* Work in a queue, with its arguments. */
struct late_op {
    enum late_kind kind;
    uint32_t queue, number; /* number: of the lane, or of the event */
    uint64_t turn;          /* turn of that event */
    void *to;
    const void *from;
    size_t bytes;
    bool to_device;
    enum pb_device_codec codec;
    struct pb_decode_batch batch;
    struct pb_unpredict_form form;
    uint32_t n, rows;
    struct pb_tile_in in;
    struct pb_tile_out out;
};

struct late_queue {
    struct late_device *device;
    pthread_t thread;
    struct late_op op[LATE_OPS];
    uint64_t queued, done;
    uint32_t seed;
};

/* Turn of an event: count of its marks. */
struct late_event {
    uint64_t queued, done;
};

struct late_device {
    void *base;
    uint32_t n, first_lane;
    struct late_queue *queue;
    struct late_event *event;
    pthread_mutex_t lock; /* protects queues and events */
    pthread_cond_t changed;
    bool is_over;
    int rc; /* result of the first work that failed */
    struct pb_err err;
};

static int late_do(struct late_device *d, const struct late_op *o, struct pb_err *err)
{
    const struct pb_whole_device *by = &whole_host_device;
    switch (o->kind) {
    case LATE_COPY:
        return by->copy(d->base, o->queue, o->to, o->from, o->bytes, err);
    case LATE_DECODE:
        return by->decode(d->base, o->queue, o->codec, &o->batch, err);
    case LATE_UNPREDICT:
        return by->unpredict(d->base, o->queue, &o->form, o->from, o->n, o->rows, err);
    case LATE_TILE:
        return by->tile(d->base, o->number, &o->in, &o->out, err);
    case LATE_SUMS:
        return by->sums(d->base, o->number, o->from, &o->in, o->to, err);
    case LATE_GATE:
        return by->gate(d->base, o->queue, &o->in, &o->out, err);
    case LATE_PASSING:
        return by->passing(d->base, o->queue, o->from, o->n, o->bytes, o->to, err);
    case LATE_MOVE:
        return by->move(d->base, o->queue, o->to, o->bytes, o->to_device, err);
    case LATE_MARK:
        return by->mark(d->base, o->queue, o->number, err);
    case LATE_AFTER:
        return 0;
    }
    return 0;
}

/* Waits for the event of an `after`; lock is held. */
static void late_await(struct late_device *d, const struct late_op *o)
{
    while (o->kind == LATE_AFTER && d->event[o->number].done < o->turn && !d->is_over)
        pthread_cond_wait(&d->changed, &d->lock);
}

static void *late_run(void *arg)
{
    struct late_queue *q = arg;
    struct late_device *d = q->device;
    struct pb_err err = {0};
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (q->done == q->queued && !d->is_over)
            pthread_cond_wait(&d->changed, &d->lock);
        if (q->done == q->queued)
            break;
        const struct late_op *o = &q->op[q->done % LATE_OPS];
        late_await(d, o);
        pthread_mutex_unlock(&d->lock);
        q->seed = q->seed * 1103515245u + 12345u;
        usleep(q->seed >> 25); /* up to 127 us */
        const int rc = late_do(d, o, &err);
        pthread_mutex_lock(&d->lock);
        if (rc < 0 && d->rc == 0) {
            d->rc = rc;
            d->err = err;
        }
        if (o->kind == LATE_MARK)
            d->event[o->number].done = o->turn;
        q->done++;
        pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static int late_put(struct late_device *d, uint32_t queue, struct late_op *op)
{
    struct late_queue *q = &d->queue[queue];
    pthread_mutex_lock(&d->lock);
    ck_assert_uint_lt(queue, d->n);
    while (q->queued - q->done == LATE_OPS)
        pthread_cond_wait(&d->changed, &d->lock);
    op->queue = queue;
    if (op->kind == LATE_MARK)
        op->turn = ++d->event[op->number].queued;
    if (op->kind == LATE_AFTER)
        op->turn = d->event[op->number].queued;
    q->op[q->queued++ % LATE_OPS] = *op;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return 0;
}

static int late_open(const struct pb_plan *plan, const struct pb_whole_counts *counts,
                     struct pb_err *err, void **out)
{
    struct late_device *d = calloc(1, sizeof *d);
    ck_assert_uint_le(counts->queues, LATE_QUEUES);
    ck_assert_int_eq(whole_host_device.open(plan, counts, err, &d->base), 0);
    d->n = counts->queues;
    d->first_lane = counts->first_lane;
    d->queue = calloc(d->n, sizeof *d->queue);
    d->event = calloc(counts->events, sizeof *d->event);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    for (uint32_t i = 0; i < d->n; i++) {
        d->queue[i].device = d;
        d->queue[i].seed = i * 7919;
        ck_assert_int_eq(pthread_create(&d->queue[i].thread, NULL, late_run, &d->queue[i]), 0);
    }
    *out = d;
    return 0;
}

static void late_close(void *device)
{
    struct late_device *d = device;
    if (d == NULL)
        return;
    pthread_mutex_lock(&d->lock);
    d->is_over = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    for (uint32_t i = 0; i < d->n; i++)
        (void)pthread_join(d->queue[i].thread, NULL);
    whole_host_device.close(d->base);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->changed);
    free(d->queue);
    free(d->event);
    free(d);
}

static int late_use(void *device, struct pb_err *err)
{
    (void)device, (void)err;
    return 0;
}

static int late_memory(void *device, size_t bytes, struct pb_err *err, void **out)
{
    struct late_device *d = device;
    return whole_host_device.memory(d->base, bytes, err, out);
}

static int late_managed(void *device, size_t bytes, struct pb_err *err, void **out)
{
    struct late_device *d = device;
    return whole_host_device.managed(d->base, bytes, err, out);
}

static int late_move(void *device, uint32_t queue, void *memory, size_t bytes, bool to_device,
                     struct pb_err *err)
{
    (void)err;
    return late_put(
        device, queue,
        &(struct late_op){.kind = LATE_MOVE, .to = memory, .bytes = bytes, .to_device = to_device});
}

static int late_copy(void *device, uint32_t queue, void *to, const void *from, size_t bytes,
                     struct pb_err *err)
{
    (void)err;
    return late_put(device, queue,
                    &(struct late_op){.kind = LATE_COPY, .to = to, .from = from, .bytes = bytes});
}

static int late_decode(void *device, uint32_t queue, enum pb_device_codec codec,
                       const struct pb_decode_batch *batch, struct pb_err *err)
{
    (void)err;
    return late_put(device, queue,
                    &(struct late_op){.kind = LATE_DECODE, .codec = codec, .batch = *batch});
}

static int late_unpredict(void *device, uint32_t queue, const struct pb_unpredict_form *form,
                          const struct pb_unpredict_block *blocks, uint32_t n, uint32_t rows_most,
                          struct pb_err *err)
{
    (void)err;
    return late_put(
        device, queue,
        &(struct late_op){
            .kind = LATE_UNPREDICT, .form = *form, .from = blocks, .n = n, .rows = rows_most});
}

static int late_tile(void *device, uint32_t lane, const struct pb_tile_in *in,
                     const struct pb_tile_out *out, struct pb_err *err)
{
    const struct late_device *d = device;
    (void)err;
    return late_put(device, d->first_lane + lane,
                    &(struct late_op){.kind = LATE_TILE, .number = lane, .in = *in, .out = *out});
}

static int late_sums(void *device, uint32_t lane, const struct pb_slot_head *head,
                     const struct pb_tile_in *in, int32_t *out, struct pb_err *err)
{
    const struct late_device *d = device;
    (void)err;
    return late_put(
        device, d->first_lane + lane,
        &(struct late_op){.kind = LATE_SUMS, .number = lane, .from = head, .in = *in, .to = out});
}

static int late_gate(void *device, uint32_t queue, const struct pb_tile_in *in,
                     const struct pb_tile_out *out, struct pb_err *err)
{
    (void)err;
    return late_put(device, queue, &(struct late_op){.kind = LATE_GATE, .in = *in, .out = *out});
}

static int late_passing(void *device, uint32_t queue, const struct pb_statistics_plane *planes,
                        uint32_t n, uint64_t most_px, uint32_t *counts, struct pb_err *err)
{
    (void)err;
    return late_put(
        device, queue,
        &(struct late_op){
            .kind = LATE_PASSING, .from = planes, .n = n, .bytes = (size_t)most_px, .to = counts});
}

/* The base, after the work in the queue is done. */
static void *late_base(struct late_device *d, uint32_t queue)
{
    const struct late_queue *q = &d->queue[queue];
    pthread_mutex_lock(&d->lock);
    while (q->done != q->queued)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    return d->base;
}

static int late_statistics(void *device, uint32_t queue, const struct pb_statistics_plane *planes,
                           uint32_t n, uint64_t most_px, struct pb_statistics_part *parts,
                           struct pb_err *err)
{
    return whole_host_device.statistics(late_base(device, queue), queue, planes, n, most_px, parts,
                                        err);
}

static int late_percentiles(void *device, uint32_t queue, struct pb_percentiles *state,
                            const struct pb_statistics_plane *planes, uint32_t n, uint64_t most_px,
                            struct pb_err *err)
{
    return whole_host_device.percentiles(late_base(device, queue), queue, state, planes, n, most_px,
                                         err);
}

static int late_mark(void *device, uint32_t queue, uint32_t event, struct pb_err *err)
{
    (void)err;
    return late_put(device, queue, &(struct late_op){.kind = LATE_MARK, .number = event});
}

static int late_after(void *device, uint32_t queue, uint32_t event, struct pb_err *err)
{
    (void)err;
    return late_put(device, queue, &(struct late_op){.kind = LATE_AFTER, .number = event});
}

static int late_happened(void *device, uint32_t event, const char *what, struct pb_err *err)
{
    struct late_device *d = device;
    (void)what;
    pthread_mutex_lock(&d->lock);
    const int rc = d->rc;
    const bool is_done = d->event[event].done == d->event[event].queued;
    if (rc < 0)
        *err = d->err;
    pthread_mutex_unlock(&d->lock);
    return rc < 0 ? rc : is_done;
}

static int late_when(void *device, uint32_t event, uint64_t *out_ns, struct pb_err *err)
{
    struct late_device *d = device;
    return whole_host_device.when(d->base, event, out_ns, err);
}

static const struct pb_whole_device whole_late_device = {
    .open = late_open,
    .close = late_close,
    .use = late_use,
    .memory = late_memory,
    .table = late_memory,
    .managed = late_managed,
    .move = late_move,
    .seen = whole_host_seen,
    .copy = late_copy,
    .decode = late_decode,
    .unpredict = late_unpredict,
    .tile = late_tile,
    .sums = late_sums,
    .gate = late_gate,
    .passing = late_passing,
    .statistics = late_statistics,
    .percentiles = late_percentiles,
    .mark = late_mark,
    .after = late_after,
    .happened = late_happened,
    .when = late_when,
};
#endif
