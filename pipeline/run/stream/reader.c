/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Tiles are read with their halo into slots, through the cells that all readers share or, if
 * tiles have no blocks in common, straight from the file. The exchange of a tile's parts
 * (pipeline/plan/exchange.h) decides which part is read next, and when the tile is complete.
 */
#include "pipeline/run/stream/reader.h"
#include "pipeline/plan/cache.h"
#include "pipeline/plan/exchange.h"
#include "pipeline/run/stream/infinities.h"
#include "pipeline/run/stream/rests.h"
#include "pipeline/run/stream/strips.h"
#include "pipeline/run/stream/tile_store.h"

#include "config/base/clock.h"
#include "pipeline/profile/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A source whose cells are decoded ahead. */
struct source_of_reader {
    const struct pb_reader *reader;
    size_t source;
    uint32_t unit, number, at; /* the tile that is `at` tiles after the reader's in the order */
};

/* Rectangle of the source for the tile that is i + 1 tiles after the reader's own in the visiting
 * order. Each reader decodes two cells, therefore two tiles for each of them are looked at. */
static bool later_rect(void *user, uint32_t i, struct pb_rect *out_rect)
{
    struct source_of_reader *s = user;
    const struct pb_plan *plan = s->reader->stream->plan;
    if (i > 2 * plan->layout.readers)
        return false;
    if (i + 1 < s->at || s->at == 0)
        *s = (struct source_of_reader){s->reader, s->source, s->reader->unit, s->reader->number, 0};
    for (; s->at < i + 1; s->at++)
        if (!pb_order_next(&plan->layout.grid, plan->layout.order, &s->unit, &s->number))
            return false;
    const struct pb_tile tile = pb_plan_tile(plan, s->number, s->unit);
    *out_rect = tile.read[plan->work.source[s->source].window];
    return true;
}

/* Reads through the cells that all readers share. Cells for tiles that a gate may leave out are
 * not decoded ahead. */
static int read_cells(struct pb_reader *r, size_t source, enum pb_plan_part part,
                      const struct pb_window *to, struct pb_err *err)
{
    const struct pb_stream *s = r->stream;
    struct source_of_reader later = {.reader = r, .source = source};
    struct pb_rect rest[2];
    const bool knows_rest =
        pb_plan_cache_rest(s->plan, r->number, s->plan->work.source[source].window, rest);
    const struct pb_cache_reader reader = {
        .raster = r->source[source],
        .parked_ns = &r->parked,
        .later = (part == PB_PLAN_FIRST || s->gate == NULL) && pb_raster_is_ahead(r->source[source])
                     ? later_rect
                     : NULL,
        .user = &later,
        .rest = knows_rest ? rest : NULL,
    };
    return pb_block_cache_read(s->cache[source][part], &reader, to, err);
}

/* Reads a part of a source's bands into their planes of the window. */
static int read_part(struct pb_reader *r, size_t source, enum pb_plan_part part,
                     const struct pb_window *window, struct pb_err *err)
{
    struct pb_stream *s = r->stream;
    const struct pb_plan_source *from = &s->plan->work.source[source];
    const struct pb_plan_bands bands = pb_plan_bands_of(from, part);
    struct pb_window to = *window;
    if (window->rect.w == 0 || bands.n == 0)
        return 0;
    to.data = (char *)window->data + from->plane * window->plane_bytes;
    if (!bands.has_mask)
        to.mask = NULL;
    if (s->cache[source][part] != NULL)
        return read_cells(r, source, part, &to, err);
    return pb_raster_read(r->source[source], bands.bands, bands.n, &to, err);
}

/* Reads the gate's bands of the tile; *out_passes: true if the tile is to be computed. */
static int look(struct pb_reader *r, const struct pb_tile *tile, bool *out_passes,
                struct pb_err *err)
{
    const struct pb_plan *plan = r->stream->plan;
    int rc = 0;
    pb_work_begin(PB_WORK_GATE, tile->number);
    pb_gate_begin(&r->gate, tile);
    for (size_t i = 0; i < plan->work.n_sources && rc == 0; i++)
        rc = read_part(r, i, PB_PLAN_FIRST, &r->gate.in.window[plan->work.source[i].window], err);
    rc = rc ? rc : pb_gate_passes(&r->gate, tile, out_passes);
    pb_work_end();
    if (rc == -EINVAL && err->code == PB_OK)
        return pb_fail(err, PB_E_SYSTEM, "tile %u does not fit its gate; please report the input",
                       tile->number);
    return rc;
}

static bool has_tiles(const struct pb_stream *s)
{
    return s->store != NULL && pb_tile_store_is_closed(s->store);
}

/* True if the device has the pixels from a round before. */
static bool is_stored(const struct pb_stream *s, const struct pb_tile *tile)
{
    return s->head != NULL && s->head->round > 1 && tile->number < s->n_stored;
}

/* Writes the head that precedes the pixels in a slot. */
static void put_head(const struct pb_stream *s, void *slot)
{
    if (s->head != NULL)
        memcpy(slot, s->head, s->plan->layout.format.head_bytes);
}

/* Acquires a slot and fills in the known pixels of the tile: the gate's bands, or the pixels that
 * the first round has read. */
static int take_slot(struct pb_reader *r, struct pb_tile_read *d)
{
    struct pb_stream *s = r->stream;
    pb_work_begin(PB_WORK_WAIT, d->tile.number);
    int rc = s->rests != NULL ? pb_rests_take(s->rests, &d->tile, &r->parked) : 0;
    if (rc == 0 && s->in != NULL)
        rc = wic_acquire(s->in, WIC_FOREVER, &d->slot);
    pb_work_end();
    if (rc < 0)
        return rc;
    d->has_slot = true;
    uint64_t start = pb_clock_mono_ns();
    if (has_tiles(s) && !is_stored(s, &d->tile))
        pb_tile_store_get(s->store, &d->tile, d->slot.data);
    pb_slot_tile(&s->plan->layout.format, &d->tile, d->slot.data, &d->in);
    for (size_t i = 0; i < s->plan->work.n_sources && s->gate != NULL; i++)
        pb_gate_copy(&r->gate, i, &d->in.window[i]);
    atomic_fetch_add(&s->read.busy_ns, pb_clock_mono_ns() - start);
    return 0;
}

/* Sends a part of the tile down. */
static int send_part(struct pb_reader *r, struct pb_tile_read *d, uint32_t part, struct pb_err *err)
{
    struct pb_stream *s = r->stream;
    bool is_look = s->gate != NULL && part == 0;
    size_t source = part - (s->gate != NULL);
    int rc = is_look || d->has_slot ? 0 : take_slot(r, d);
    uint64_t start = pb_clock_mono_ns(), parked = r->parked;
    if (is_look)
        rc = look(r, &d->tile, &d->passes, err);
    else if (rc == 0 && !has_tiles(s) && !is_stored(s, &d->tile))
        rc = read_part(r, source, PB_PLAN_LATER, &d->in.window[s->plan->work.source[source].window],
                       err);
    atomic_fetch_add(&s->read.busy_ns, pb_clock_mono_ns() - start - (r->parked - parked));
    d->tile.parts++;
    return rc;
}

/* Completes a tile whose parts are all in the slot. */
static void complete(struct pb_reader *r, struct pb_tile_read *d)
{
    struct pb_stream *s = r->stream;
    d->tile.is_stored = is_stored(s, &d->tile);
    d->slot.bytes = d->tile.is_stored ? s->plan->layout.format.head_bytes
                                      : pb_slot_tile_bytes(&s->plan->layout.format, &d->tile);
    if (s->store != NULL && !has_tiles(s))
        pb_tile_store_put(s->store, &d->tile, d->slot.data);
    if (s->rests != NULL)
        pb_rests_fill(s->rests, &d->tile, &d->in);
    if (s->infinities != NULL && !d->tile.is_stored)
        pb_infinities_count(s->infinities, &d->tile, &d->in);
    put_head(s, d->slot.data);
    *(struct pb_tile *)d->slot.user = d->tile;
    atomic_fetch_add(&s->read.tiles, 1);
    atomic_fetch_add(&s->read.bytes, d->slot.bytes);
    pb_trace_tile(PB_TRACE_READY, d->tile.number);
}

static int read_parts(struct pb_reader *r, struct pb_tile_read *d, struct pb_err *err)
{
    uint32_t part = 0;
    int rc;
    while ((rc = pb_part_exchange_next(&r->parts, !d->passes, &part, err)) == 1) {
        rc = send_part(r, d, part, err);
        if (rc < 0)
            return rc;
    }
    if (rc < 0)
        return rc;
    if (d->passes && !d->has_slot)
        return pb_fail(err, PB_E_SYSTEM, "the exchange sends no part of tile %u", d->tile.number);
    if (d->passes)
        complete(r, d);
    return 0;
}

/* True if a file is not read through the cells that all readers share. */
static bool is_direct(const struct pb_reader *r, size_t source)
{
    const struct pb_stream *s = r->stream;
    return r->source[source] != NULL && s->cache[source][PB_PLAN_FIRST] == NULL &&
           s->cache[source][PB_PLAN_LATER] == NULL;
}

bool pb_reader_is_ahead(const struct pb_reader *r)
{
    for (size_t i = 0; i < r->stream->plan->work.n_sources; i++)
        if (is_direct(r, i) && pb_raster_is_ahead(r->source[i]))
            return true;
    return false;
}

/* Announces the reader's next tile to the files that it reads directly, or that it is unknown. */
static void expect(struct pb_reader *r)
{
    const struct pb_plan *plan = r->stream->plan;
    const struct pb_plan_layout *l = &plan->layout;
    uint32_t unit = r->next_unit, number = r->next;
    bool is_known = r->has_next;
    if (!is_known && l->readers == 1) {
        unit = r->unit;
        number = r->number;
        is_known = pb_order_next(&l->grid, l->order, &unit, &number);
    }
    const struct pb_tile none = {0}, tile = is_known ? pb_plan_tile(plan, number, unit) : none;
    for (size_t i = 0; i < plan->work.n_sources; i++)
        if (is_direct(r, i))
            pb_raster_expect(r->source[i], &tile.read[plan->work.source[i].window]);
}

int pb_reader_tile(struct pb_reader *r, uint32_t unit, uint32_t number, struct pb_err *err,
                   struct pb_tile_read *d)
{
    r->unit = unit;
    r->number = number;
    if (pb_reader_is_ahead(r))
        expect(r);
    d->tile = pb_plan_tile(r->stream->plan, number, unit);
    d->passes = true;
    d->has_slot = false;
    pb_trace_tile(PB_TRACE_TILE, number);
    pb_work_begin(PB_WORK_FILL, number);
    int rc = read_parts(r, d, err);
    pb_work_end();
    return rc;
}

/* Returns how many lines of the source, from its first one, must be complete for n lines from
 * `line`. */
static int32_t lines_needed(const struct pb_plan *plan, size_t source, int32_t line, int32_t n)
{
    const struct pb_tile strip = pb_plan_strip(plan, 0, line, n);
    const struct pb_rect *const read = &strip.read[plan->work.source[source].window];
    return read->y + read->h;
}

/* Returns the largest count of lines, 1 to n, for which `complete` lines of the source are enough.
 * They must be enough for one line. */
static int32_t lines_ready(const struct pb_plan *plan, size_t source, int32_t line, int32_t n,
                           int32_t complete)
{
    int32_t least = 1;
    if (lines_needed(plan, source, line, n) <= complete)
        return n;
    while (n - least > 1) {
        const int32_t half = least + (n - least) / 2;
        if (lines_needed(plan, source, line, half) <= complete)
            least = half;
        else
            n = half;
    }
    return least;
}

int pb_reader_await(struct pb_reader *r, int32_t line, int32_t rows, struct pb_err *err)
{
    const struct pb_plan *const plan = r->stream->plan;
    int32_t ready = rows;
    pb_work_begin(PB_WORK_WAIT, (uint32_t)line);
    for (size_t i = 0; i < plan->work.n_sources && ready > 0; i++) {
        if (r->source[i] == NULL)
            continue;
        const int complete = pb_raster_await(r->source[i], lines_needed(plan, i, line, 1), err);
        ready = complete < 0 ? complete : lines_ready(plan, i, line, ready, complete);
    }
    pb_work_end();
    return ready;
}

int pb_reader_rows(struct pb_reader *r, const struct pb_tile *rows, void *slot, struct pb_err *err)
{
    struct pb_stream *const s = r->stream;
    const struct pb_plan *const plan = s->plan;
    struct pb_tile_in in;
    int rc = 0;
    pb_work_begin(PB_WORK_FILL, rows->number);
    const uint64_t start = pb_clock_mono_ns();
    pb_slot_tile(&plan->layout.format, rows, slot, &in);
    for (size_t i = 0; i < plan->work.n_sources && rc == 0; i++)
        rc = read_part(r, i, PB_PLAN_FIRST, &in.window[plan->work.source[i].window], err);
    for (size_t i = 0; i < plan->work.n_sources && rc == 0; i++)
        rc = read_part(r, i, PB_PLAN_LATER, &in.window[plan->work.source[i].window], err);
    if (rc == 0 && s->infinities != NULL)
        pb_infinities_count(s->infinities, rows, &in);
    atomic_fetch_add(&s->read.busy_ns, pb_clock_mono_ns() - start);
    atomic_fetch_add(&s->read.bytes, pb_slot_tile_bytes(&plan->layout.format, rows));
    pb_work_end();
    return rc;
}

int pb_reader_open(struct pb_reader *r, struct pb_stream *s, struct pb_err *err)
{
    r->stream = s;
    int rc = s->gate != NULL ? pb_gate_reader_init(&r->gate, s->gate, err) : 0;
    rc = rc ? rc : pb_plan_part_exchange(s->plan, err, &r->parts);
    for (size_t i = 0; i < s->plan->work.n_sources && rc == 0; i++)
        if (!has_tiles(s) && s->raster[i] != NULL && s->plan->work.source[i].n_bands > 0)
            rc = pb_raster_open_again(s->raster[i], s->limits, err, &r->source[i]);
    return rc;
}

void pb_reader_close(struct pb_reader *r)
{
    if (r->stream == NULL)
        return;
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        pb_raster_close(r->source[i]);
    pb_gate_reader_fini(&r->gate);
    pb_part_exchange_fini(&r->parts);
    atomic_fetch_add(&r->stream->read.parked_ns, r->parked);
    r->stream = NULL;
}

int pb_reader_leave_out(struct pb_stream *s, const struct pb_tile *tile, uint32_t worker,
                        struct pb_err *err)
{
    const struct pb_tile_planes nothing = {.data = NULL, .plane_px = 0};
    int rc = pb_arrivals_note(s->arrivals, tile, err);
    rc = rc ? rc : pb_stream_deliver(s, tile, &nothing, worker, err);
    pb_trace_tile(PB_TRACE_TILE_END, tile->number);
    if (rc == 0)
        pb_in_flight_done(s->in_flight, tile->unit);
    return rc;
}

/* --- reader thread, for an executor with its own threads ---------------------------------------
 */

/* Sends the tile to the executor, or delivers it at once if it is left out. */
static int send_tile(struct pb_reader *r, uint32_t number, const struct pb_tile_read *d,
                     struct pb_err *err)
{
    struct pb_stream *s = r->stream;
    if (!d->passes)
        return pb_reader_leave_out(s, &d->tile, s->plan->layout.writers + number, err);
    int rc = wic_publish(s->in, &d->slot, d->slot.bytes);
    pb_stream_trace_slots(s);
    return rc;
}

static int read_units(struct pb_reader *r, uint32_t number, struct pb_err *err)
{
    struct pb_stream *s = r->stream;
    uint32_t *tiles =
        calloc(pb_order_unit_max(&s->plan->layout.grid, s->plan->layout.order), sizeof *tiles);
    if (tiles == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for a reader");
    uint32_t unit = 0;
    struct pb_tile_read d;
    int rc;
    while ((rc = pb_in_flight_take(s->in_flight, &unit, &r->parked)) == 0) {
        uint32_t n = pb_order_unit(&s->plan->layout.grid, s->plan->layout.order, unit, tiles);
        for (uint32_t i = 0; i < n && rc == 0; i++) {
            r->has_next = i + 1 < n;
            r->next_unit = unit;
            r->next = r->has_next ? tiles[i + 1] : 0;
            rc = pb_reader_tile(r, unit, tiles[i], err, &d);
            rc = rc ? rc : send_tile(r, number, &d, err);
        }
        if (rc < 0)
            break;
    }
    free(tiles);
    return rc;
}

void pb_reader_run(struct pb_stream *stream, uint32_t number)
{
    struct pb_err err = {0};
    struct pb_reader r = {0};
    int rc = stream->strips != NULL ? pb_strips_send(stream->strips, &err)
                                    : pb_reader_open(&r, stream, &err);
    if (rc == 0 && stream->strips == NULL)
        rc = read_units(&r, number, &err);
    pb_reader_close(&r);
    pb_stream_thread_ended(stream, rc, &err);
}
