/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A worker takes a reader before it takes the number of a tile, and returns the reader when the
 * tile is read: with one reader, tiles are read one after the other in the visiting order. No
 * worker holds a reader while it waits for another worker, except inside the block cache, whose
 * cells are always completed by the worker that decodes them.
 *
 * If two blocks are decoded in turn, a reader needs to know the tile after its own. If there are
 * several readers, that tile is taken for the reader, if one may be handed out, and read by the
 * next worker with the reader. Readers with such a tile are taken first, so that it only waits for
 * the tile before it. */
#include "pipeline/run/stream/tile_worker.h"
#include "pipeline/plan/engine.h"
#include "config/base/clock.h"
#include "pipeline/profile/work.h"
#include "pipeline/run/stream/stream.h"
#include "pipeline/run/stream/reader.h"
#include "pipeline/run/stream/strips.h"

#include <stdlib.h>
#include <string.h>

struct pb_tile_workers {
    struct pb_stream *stream;
    void *exec;
    pthread_mutex_t lock; /* protects n_free, free */
    pthread_cond_t given_back;
    uint32_t n_free;
    struct pb_reader **free; /* the first n_free are unused */
    struct pb_reader reader[];
};

int pb_tile_workers_create(struct pb_stream *stream, void *exec, struct pb_err *err,
                           struct pb_tile_workers **out_workers)
{
    const uint32_t n = stream->plan->layout.readers;
    struct pb_tile_workers *w = calloc(1, sizeof *w + n * sizeof w->reader[0]);
    if (w == NULL || (w->free = calloc(n, sizeof(struct pb_reader *))) == NULL) {
        free(w);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the readers");
    }
    w->stream = stream;
    w->exec = exec;
    for (uint32_t i = 0; i < n; i++)
        w->free[w->n_free++] = &w->reader[i];
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->given_back, NULL);
    *out_workers = w;
    return 0;
}

void pb_tile_workers_destroy(struct pb_tile_workers *w)
{
    if (w == NULL)
        return;
    for (uint32_t i = 0; i < w->stream->plan->layout.readers; i++)
        pb_reader_close(&w->reader[i]);
    pthread_cond_destroy(&w->given_back);
    pthread_mutex_destroy(&w->lock);
    free(w->free);
    free(w);
}

/* Parks until a reader is free. A worker with a reader reads a tile, or ends with the stream, and
 * returns the reader. */
static struct pb_reader *take_reader(struct pb_tile_workers *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->n_free == 0) {
        pb_work_begin(PB_WORK_WAIT, 0);
        pthread_cond_wait(&w->given_back, &w->lock);
        pb_work_end();
    }
    uint32_t best = w->n_free - 1;
    for (uint32_t i = 0; i < w->n_free; i++) {
        const struct pb_reader *r = w->free[i], *b = w->free[best];
        if (r->has_next && (!b->has_next || r->next_unit < b->next_unit))
            best = i;
    }
    struct pb_reader *reader = w->free[best];
    w->free[best] = w->free[--w->n_free];
    pthread_mutex_unlock(&w->lock);
    return reader;
}

static void give_reader_back(struct pb_tile_workers *w, struct pb_reader *reader)
{
    pthread_mutex_lock(&w->lock);
    w->free[w->n_free++] = reader;
    pthread_cond_signal(&w->given_back);
    pthread_mutex_unlock(&w->lock);
}

/* Takes the tile that is reserved for the reader, or the next one. */
static int take_tile(struct pb_tile_workers *w, struct pb_reader *reader, uint32_t *out_unit,
                     uint32_t *out_number)
{
    uint64_t waited = 0;
    if (!reader->has_next)
        return pb_in_flight_take_tile(w->stream->in_flight, out_unit, out_number, &waited);
    *out_unit = reader->next_unit;
    *out_number = reader->next;
    reader->has_next = false;
    return 0;
}

/* Reserves the next tile for the reader; with one reader it is known anyway. */
static void look_ahead(struct pb_tile_workers *w, struct pb_reader *reader)
{
    reader->has_next =
        w->stream->plan->layout.readers > 1 && pb_reader_is_ahead(reader) &&
        pb_in_flight_try_tile(w->stream->in_flight, &reader->next_unit, &reader->next) == 1;
}

/* Reads the next tile. 0, or a code that ends the thread. */
static int read_next(struct pb_tile_workers *w, struct pb_err *err, struct pb_tile_read *out_read)
{
    struct pb_stream *s = w->stream;
    uint32_t unit = 0, number = 0;
    uint64_t start = pb_clock_mono_ns();
    struct pb_reader *reader = take_reader(w);
    int rc = take_tile(w, reader, &unit, &number);
    atomic_fetch_add(&s->read.parked_ns, pb_clock_mono_ns() - start);
    if (rc == 0 && reader->stream == NULL)
        rc = pb_reader_open(reader, s, err);
    if (rc == 0) {
        look_ahead(w, reader);
        rc = pb_reader_tile(reader, unit, number, err, out_read);
    }
    atomic_fetch_add(&s->read.parked_ns, reader->parked);
    reader->parked = 0;
    if (rc < 0 && err->code != PB_OK) /* before another worker fails because of the same reader */
        pb_stream_fail(s, err);
    give_reader_back(w, reader);
    return rc;
}

/* Computes and delivers a tile that was read. */
static int finish_tile(struct pb_tile_workers *w, const struct pb_tile_read *read, void *out,
                       uint32_t number, struct pb_err *err)
{
    struct pb_stream *s = w->stream;
    const struct pb_tile *tile = &read->tile;
    if (!read->passes)
        return pb_reader_leave_out(s, tile, number, err);
    int rc = pb_arrivals_note(s->arrivals, tile, err);
    rc = rc ? rc : pb_exec_cpu_tile(w->exec, number, tile, read->slot.data, out, err);
    rc = rc ? rc : pb_stream_write(s, tile, out, pb_plan_out_bytes(s->plan, tile), number, err);
    if (rc == 0)
        pb_in_flight_done(s->in_flight, tile->unit);
    return rc;
}

/* Body of a thread that computes a column of strips, or writes tiles that are made of strips. */
static int work_strips(const struct pb_tile_workers *w, uint32_t number, struct pb_err *err)
{
    const struct pb_stream *const s = w->stream;
    const uint32_t cols = s->plan->layout.strip_cols;
    return number < cols ? pb_strips_compute(s->strips, w->exec, number, err)
                         : pb_strips_write(s->strips, number - cols, err);
}

void pb_tile_worker_run(struct pb_tile_workers *w, uint32_t number)
{
    struct pb_stream *s = w->stream;
    const struct pb_plan *plan = s->plan;
    struct pb_err err = {0};
    struct pb_tile in_slot;
    struct pb_tile_read read = {
        .slot = {.data = (char *)s->own_in + number * wic_slot_stride(plan->layout.in_slot_bytes),
                 .user = &in_slot}};
    void *out = (char *)s->own_out + number * wic_slot_stride(plan->layout.out_slot_bytes);
    int rc = pb_stream_is_by_lines(s) ? work_strips(w, number, &err) : 0;
    while (rc == 0 && (rc = read_next(w, &err, &read)) == 0 &&
           (rc = finish_tile(w, &read, out, number, &err)) == 0)
        ;
    pb_in_flight_ended(s->in_flight);
    pb_stream_thread_ended(s, rc, &err);
}
