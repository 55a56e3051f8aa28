/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The rows of tiles are a ring: row r of the grid is in place r % n after row r - n was written.
 * Writers take tiles from the limiter in the visiting order, which is by rows, and wait until the
 * row of the tile is full. Exchange and limiter are the same as for tiles computed as a whole. */
#include "pipeline/run/stream/strips.h"

#include "config/base/clock.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/exchange.h"
#include "pipeline/profile/work.h"
#include "pipeline/run/stream/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    WRITER_NICENESS = 5, /* in addition to that of the process */
    POLL_NS = 200000
};

/* A row of tiles in memory. */
struct row {
    uint32_t number; /* row of the grid in this place, now or next */
    uint64_t missing_px;
    uint32_t unwritten; /* count of tiles */
    char *tiles;        /* one after the other, tile_bytes apart */
};

struct pb_strips {
    struct pb_stream *stream;
    size_t tile_bytes;
    char *memory;
    bool aborted;
    pthread_mutex_t lock;       /* protects aborted and the counts of rows */
    pthread_cond_t full, freed; /* a row is complete; a row was written */
    uint32_t n_rows;
    struct row row[];
};

static void begin_row(const struct pb_strips *s, struct row *row, uint32_t number)
{
    const struct pb_grid *const g = &s->stream->plan->layout.grid;
    row->number = number;
    row->unwritten = (uint32_t)g->cols;
    if (number < (uint32_t)g->rows)
        row->missing_px =
            (uint64_t)g->image_w * (uint64_t)pb_grid_core(g, number * (uint32_t)g->cols).h;
}

int pb_strips_create(struct pb_stream *stream, struct pb_err *err, struct pb_strips **out_strips)
{
    const struct pb_plan *const plan = stream->plan;
    const uint32_t n = plan->layout.strip_rows, cols = (uint32_t)plan->layout.grid.cols;
    struct pb_strips *const s = calloc(1, sizeof *s + n * sizeof s->row[0]);
    if (s == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the stream");
    s->stream = stream;
    s->n_rows = n;
    s->tile_bytes = pb_plan_strip_tile_bytes(plan);
    s->memory = malloc(pb_plan_strip_rows_bytes(plan));
    if (s->memory == NULL) {
        free(s);
        return pb_fail(err, PB_E_MEMORY, "out of memory for %u rows of tiles", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        s->row[i].tiles = s->memory + i * cols * s->tile_bytes;
        begin_row(s, &s->row[i], i);
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->full, NULL);
    pthread_cond_init(&s->freed, NULL);
    *out_strips = s;
    return 0;
}

void pb_strips_destroy(struct pb_strips *s)
{
    if (s == NULL)
        return;
    pthread_cond_destroy(&s->freed);
    pthread_cond_destroy(&s->full);
    pthread_mutex_destroy(&s->lock);
    free(s->memory);
    free(s);
}

void pb_strips_abort(struct pb_strips *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->aborted = true;
    pthread_cond_broadcast(&s->full);
    pthread_cond_broadcast(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

/* --- rows of tiles ---------------------------------------------------------------------------- */

/* Waits until that row of the grid has a place in memory. Returns 0 or -ECANCELED. */
static int wait_freed(struct pb_strips *s, const struct row *row, uint32_t number)
{
    pthread_mutex_lock(&s->lock);
    pb_work_begin(PB_WORK_WAIT, number);
    while (!s->aborted && row->number != number)
        pthread_cond_wait(&s->freed, &s->lock);
    pb_work_end();
    const int rc = s->aborted ? -ECANCELED : 0;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int wait_full(struct pb_strips *s, const struct row *row, uint32_t number)
{
    pthread_mutex_lock(&s->lock);
    pb_work_begin(PB_WORK_WAIT, number);
    while (!s->aborted && (row->number != number || row->missing_px > 0))
        pthread_cond_wait(&s->full, &s->lock);
    pb_work_end();
    const int rc = s->aborted ? -ECANCELED : 0;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* Copies the part of a strip that a tile has. */
static void copy_part(const struct pb_strips *s, const struct pb_tile *strip, const float *planes,
                      const struct pb_rect *tile, char *to)
{
    const struct pb_tile whole = {.core = *tile};
    const struct pb_rect *const core = &strip->core;
    const size_t from_px = pb_tile_out_px(strip), to_px = pb_tile_out_px(&whole);
    const size_t x = (size_t)(tile->x - core->x), y = (size_t)(core->y - tile->y);
    const size_t n = s->stream->plan->work.outputs.n, w = (size_t)tile->w;
    for (size_t i = 0; i < n; i++)
        for (size_t row = 0; row < (size_t)core->h; row++)
            memcpy((float *)(void *)to + i * to_px + (y + row) * w,
                   planes + i * from_px + row * (size_t)core->w + x, w * sizeof *planes);
}

static int put(struct pb_strips *s, const struct pb_tile *strip, const float *planes)
{
    const struct pb_grid *const g = &s->stream->plan->layout.grid;
    const struct pb_rect *const core = &strip->core;
    const uint32_t number = (uint32_t)(core->y / g->side_px), cols = (uint32_t)g->cols;
    struct row *const row = &s->row[number % s->n_rows];
    const int rc = wait_freed(s, row, number);
    if (rc < 0)
        return rc;
    pb_work_begin(PB_WORK_COPY, number);
    for (uint32_t c = (uint32_t)(core->x / g->side_px); c < cols; c++) {
        const struct pb_rect tile = pb_grid_core(g, number * cols + c);
        if (tile.x >= core->x + core->w)
            break;
        copy_part(s, strip, planes, &tile, row->tiles + c * s->tile_bytes);
    }
    pb_work_end();
    pthread_mutex_lock(&s->lock);
    row->missing_px -= (uint64_t)core->w * (uint64_t)core->h;
    if (row->missing_px == 0)
        pthread_cond_broadcast(&s->full);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static void tile_written(struct pb_strips *s, struct row *row)
{
    pthread_mutex_lock(&s->lock);
    if (--row->unwritten == 0) {
        begin_row(s, row, row->number + s->n_rows);
        pthread_cond_broadcast(&s->freed);
    }
    pthread_mutex_unlock(&s->lock);
}

/* --- strips ----------------------------------------------------------------------------------- */

static void note_latency(struct pb_stream *s, const struct pb_tile *strip)
{
    const int64_t now = (int64_t)pb_clock_mono_ns();
    for (int32_t y = strip->core.y; y < strip->core.y + strip->core.h; y++) {
        const int64_t at = pb_raster_published_ns(s->raster[0], y);
        if (at > 0 && at <= now)
            pb_latency_add(&s->latency, (uint64_t)(now - at));
    }
}

/* Delivers a computed strip to the sinks that take lines, then to its tiles. */
static int deliver(struct pb_strips *s, const struct pb_tile *strip, const float *planes,
                   uint32_t worker, struct pb_err *err)
{
    const struct pb_tile_planes pixels = {.data = planes, .plane_px = pb_tile_out_px(strip)};
    const int rc = pb_stream_deliver_lines(s->stream, strip, &pixels, worker, err);
    if (rc < 0)
        return rc;
    note_latency(s->stream, strip);
    return put(s, strip, planes);
}

/* Waits for the first line of a strip, and reads the lines that have arrived, at most as many as a
 * strip may have. Returns their count, or a code that ends the thread. */
static int read_strip(struct pb_strips *s, struct pb_reader *reader, uint32_t col, int32_t first,
                      void *slot, struct pb_tile *out, struct pb_err *err)
{
    const struct pb_plan *const plan = s->stream->plan;
    const int32_t n = pb_reader_await(reader, first, pb_plan_strip_lines(plan, first), err);
    if (n < 0)
        return n;
    *out = pb_plan_strip(plan, col, first, n);
    const int rc = pb_reader_rows(reader, out, slot, err);
    return rc < 0 ? rc : n;
}

static int compute_all(struct pb_strips *s, struct pb_reader *reader, void *exec, uint32_t col,
                       struct pb_err *err)
{
    struct pb_stream *const stream = s->stream;
    const struct pb_plan_layout *const l = &stream->plan->layout;
    void *const in = (char *)stream->own_in + col * wic_slot_stride(l->in_slot_bytes);
    void *const out = (char *)stream->own_out + col * wic_slot_stride(l->out_slot_bytes);
    struct pb_tile strip = {0};
    int rc = 0;
    for (int32_t y = 0; y < l->grid.image_h && rc >= 0; y += rc) {
        rc = read_strip(s, reader, col, y, in, &strip, err);
        if (rc < 0)
            break;
        int done = pb_exec_cpu_tile(exec, col, &strip, in, out, err);
        done = done ? done : deliver(s, &strip, out, col, err);
        rc = done < 0 ? done : rc;
    }
    return rc < 0 ? rc : -EPIPE;
}

int pb_strips_compute(struct pb_strips *s, void *exec, uint32_t col, struct pb_err *err)
{
    struct pb_reader reader = {0};
    int rc = pb_reader_open(&reader, s->stream, err);
    rc = rc ? rc : compute_all(s, &reader, exec, col, err);
    pb_reader_close(&reader);
    return rc;
}

/* --- with a device ---------------------------------------------------------------------------- */

static int send_all(struct pb_strips *s, struct pb_reader *reader, struct pb_err *err)
{
    struct pb_stream *const stream = s->stream;
    const struct pb_plan_layout *const l = &stream->plan->layout;
    int rc = 0;
    for (int32_t y = 0; y < l->grid.image_h && rc >= 0; y += rc) {
        struct wic_slot slot;
        pb_work_begin(PB_WORK_WAIT, (uint32_t)y);
        rc = wic_acquire(stream->in, WIC_FOREVER, &slot);
        pb_work_end();
        rc = rc < 0 ? rc : read_strip(s, reader, 0, y, slot.data, slot.user, err);
        if (rc < 0)
            break;
        const int sent = wic_publish(stream->in, &slot, pb_slot_tile_bytes(&l->format, slot.user));
        rc = sent < 0 ? sent : rc;
    }
    return rc < 0 ? rc : 0;
}

/* Lets the reader poll for lines if the machine has more than two cores: a wake-up would take as
 * long as the computation of a line. */
static void poll_lines(const struct pb_strips *s, const struct pb_reader *reader)
{
    for (size_t i = 0; i < s->stream->plan->work.n_sources && pb_device_threads(0) > 2; i++)
        pb_raster_poll(reader->source[i], POLL_NS);
}

int pb_strips_send(struct pb_strips *s, struct pb_err *err)
{
    struct pb_reader reader = {0};
    int rc = pb_reader_open(&reader, s->stream, err);
    if (rc == 0)
        poll_lines(s, &reader);
    rc = rc ? rc : send_all(s, &reader, err);
    pb_reader_close(&reader);
    return rc;
}

/* Makes the strip from the line and count in a slot. Checks both: another process may have written
 * the slot. Strips must arrive in order: a strip of a later row would wait for a row that only a
 * strip after it completes. */
static int strip_of(const struct pb_plan *plan, const struct wic_slot *slot, int32_t next,
                    struct pb_tile *out, struct pb_err *err)
{
    const struct pb_tile *const said = slot->user;
    const uint32_t first = said->number, n = said->unit;
    if (next >= plan->layout.grid.image_h || first != (uint32_t)next || n < 1 ||
        n > (uint32_t)pb_plan_strip_lines(plan, next))
        return pb_fail(err, PB_E_SYSTEM, "%u lines arrived from line %u on, instead of line %d", n,
                       first, (int)next);
    *out = pb_plan_strip(plan, 0, (int32_t)first, (int32_t)n);
    return 0;
}

int pb_strips_take(struct pb_strips *s, struct pb_err *err)
{
    struct pb_stream *const stream = s->stream;
    int32_t next = 0;
    int rc = 0;
    while (rc == 0) {
        struct wic_slot slot;
        struct pb_tile strip = {0};
        pb_work_begin(PB_WORK_WAIT, 0);
        rc = wic_wait(stream->out, WIC_FOREVER, &slot);
        pb_work_end();
        rc = rc ? rc : strip_of(stream->plan, &slot, next, &strip, err);
        next += strip.core.h;
        rc = rc ? rc : deliver(s, &strip, slot.data, 0, err);
        rc = rc ? rc : wic_release(stream->out, &slot);
    }
    return rc;
}

/* --- tiles ------------------------------------------------------------------------------------ */

int pb_strips_write(struct pb_strips *s, uint32_t worker, struct pb_err *err)
{
    struct pb_stream *const stream = s->stream;
    const struct pb_plan *const plan = stream->plan;
    const uint32_t cols = (uint32_t)plan->layout.grid.cols;
    uint32_t unit = 0, number = 0;
    uint64_t waited = 0;
    int rc;
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + WRITER_NICENESS);
    while ((rc = pb_in_flight_take_tile(stream->in_flight, &unit, &number, &waited)) == 0) {
        struct row *const row = &s->row[number / cols % s->n_rows];
        struct pb_tile tile = pb_plan_tile(plan, number, unit);
        rc = wait_full(s, row, number / cols);
        if (rc < 0)
            break;
        tile.parts = pb_plan_tile_parts(plan);
        atomic_fetch_add(&stream->read.tiles, 1);
        rc = pb_arrivals_note(stream->arrivals, &tile, err);
        rc = rc ? rc
                : pb_stream_write(stream, &tile, row->tiles + number % cols * s->tile_bytes,
                                  pb_plan_out_bytes(plan, &tile), worker, err);
        if (rc < 0)
            break;
        tile_written(s, row);
        pb_in_flight_done(stream->in_flight, unit);
    }
    return rc;
}
