/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Delivers finished tiles to every sink. A writer thread takes them from the output channel of an
 * executor and returns the slots. */
#include "pipeline/cog/cog_writer.h"
#include "pipeline/run/stream/block_room.h"
#include "pipeline/run/stream/block_slot.h"
#include "pipeline/run/stream/gate.h"
#include "pipeline/run/stream/gate_answers.h"
#include "pipeline/run/stream/stream.h"
#include "pipeline/run/stream/rests.h"
#include "pipeline/run/stream/strips.h"

#include "config/base/clock.h"
#include "pipeline/profile/trace.h"

#include <errno.h>

bool pb_stream_is_by_lines(const struct pb_stream *s)
{
    return s->plan->layout.lines > 0;
}

int pb_stream_deliver_lines(struct pb_stream *s, const struct pb_tile *strip,
                            const struct pb_tile_planes *pixels, uint32_t worker,
                            struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < s->n_sinks && rc >= 0; i++)
        if (s->sinks[i].by_lines)
            rc = s->sinks[i].tile(s->sinks[i].object, strip, pixels, worker, err);
    return rc < 0 ? pb_fail(err, PB_E_OUTPUT_WRITE, "a product could not take a line") : 0;
}

int pb_stream_deliver(struct pb_stream *s, const struct pb_tile *tile,
                      const struct pb_tile_planes *pixels, uint32_t worker, struct pb_err *err)
{
    uint64_t start = pb_clock_mono_ns();
    const bool by_lines = pb_stream_is_by_lines(s);
    int rc = 0;
    pb_work_begin(PB_WORK_DELIVER, tile->number);
    for (size_t i = 0; i < s->n_sinks && rc >= 0; i++) {
        if (s->sinks[i].tile == NULL || (by_lines && s->sinks[i].by_lines))
            continue;
        pb_work_begin(PB_WORK_PRODUCT, (uint32_t)i);
        rc = s->sinks[i].tile(s->sinks[i].object, tile, pixels, worker, err);
        pb_work_end();
    }
    pb_work_end();
    atomic_fetch_add(&s->write.busy_ns, pb_clock_mono_ns() - start);
    if (rc < 0)
        return pb_fail(err, PB_E_OUTPUT_WRITE, "a product could not take a tile");
    atomic_fetch_add(&s->write.tiles, 1);
    return 0;
}

int pb_stream_write(struct pb_stream *s, const struct pb_tile *tile, const void *planes,
                    size_t bytes, uint32_t worker, struct pb_err *err)
{
    struct pb_tile_planes pixels = {.data = planes, .plane_px = pb_tile_out_px(tile)};
    /* Pairs with the store before the round: makes its settings visible, whichever thread computed.
     */
    (void)atomic_load(&s->round);
    if (s->rests != NULL)
        pixels.rest = pb_rests_find(s->rests, tile, planes, pixels.plane_px);
    pb_trace_tile(PB_TRACE_MADE, tile->number);
    int rc = pb_stream_deliver(s, tile, &pixels, worker, err);
    if (rc < 0)
        return rc;
    pb_trace_tile(PB_TRACE_TILE_END, tile->number);
    if (s->rests != NULL)
        pb_rests_give(s->rests, tile);
    atomic_fetch_add(&s->write.bytes, bytes);
    return 0;
}

/* Delivers a block to the product, in a copy that stays in memory if there is room. */
static int give_block(const struct pb_sink *sink, struct pb_cog_block block, uint32_t worker,
                      struct pb_err *err)
{
    const void *kept = NULL;
    if (sink->room != NULL && !block.raw) {
        pb_work_begin(PB_WORK_COPY, 0);
        kept = pb_block_room_keep(sink->room, block.data, block.bytes);
        pb_work_end();
    }
    block.stays = kept != NULL;
    block.data = kept != NULL ? kept : block.data;
    return sink->block(sink->object, &block, worker, err);
}

static struct pb_cog_block block_of(const struct pb_block_entry *entry, const struct wic_slot *slot)
{
    return (struct pb_cog_block){.level = entry->level,
                                 .col = entry->col,
                                 .row = entry->row,
                                 .mask = entry->is_mask != 0,
                                 .raw = entry->is_raw != 0,
                                 .data = (const char *)slot->data + entry->at,
                                 .bytes = (size_t)entry->bytes,
                                 .moved = entry->moved};
}

/* Announces the blocks of a slot before the first one is written: those of the slots after it,
 * which other threads have, need not wait in memory or on the disk then. */
static void expect_blocks(const struct pb_stream *s, const struct wic_slot *slot, uint32_t n)
{
    const struct pb_block_entry *entry = slot->data;
    for (uint32_t i = 0; i < n; i++) {
        const struct pb_block_entry own = entry[i]; /* another process can write to the slot */
        const struct pb_cog_block block = block_of(&own, slot);
        for (size_t k = 0; k < s->n_sinks; k++)
            if (s->sinks[k].expect != NULL && s->sinks[k].product == own.product)
                s->sinks[k].expect(s->sinks[k].object, &block);
    }
}

static int deliver_block(struct pb_stream *s, const struct pb_block_entry *entry,
                         const struct wic_slot *slot, uint32_t worker, struct pb_err *err)
{
    const struct pb_cog_block block = block_of(entry, slot);
    if (entry->at > slot->bytes || entry->bytes > slot->bytes - entry->at)
        return pb_fail(err, PB_E_SYSTEM, "a block ends after its slot");
    for (size_t i = 0; i < s->n_sinks; i++)
        if (s->sinks[i].block != NULL && s->sinks[i].product == entry->product)
            return give_block(&s->sinks[i], block, worker, err);
    return pb_fail(err, PB_E_SYSTEM, "a block arrived for product %u, which takes no blocks",
                   entry->product);
}

/* Delivers finished blocks; the last ones of a row of tiles complete these tiles. */
static int write_blocks(struct pb_stream *s, const struct wic_slot *slot, uint32_t worker,
                        struct pb_err *err)
{
    const struct pb_block_slot head = *(const struct pb_block_slot *)slot->user;
    const struct pb_block_entry *entry = slot->data;
    uint64_t start = pb_clock_mono_ns();
    int rc = 0;
    const uint32_t tiles = pb_grid_count(&s->plan->layout.grid);
    if (head.n > PB_BLOCK_SLOT_MOST || slot->bytes < PB_BLOCK_SLOT_HEAD ||
        slot->bytes > s->plan->layout.out_slot_bytes || head.first_tile > tiles ||
        head.n_tiles > tiles - head.first_tile)
        return pb_fail(err, PB_E_SYSTEM,
                       "a slot has more blocks than it can hold, or of other tiles");
    pb_work_begin(PB_WORK_DELIVER, 0);
    expect_blocks(s, slot, head.n);
    for (uint32_t i = 0; i < head.n && rc == 0; i++) {
        const struct pb_block_entry own = entry[i]; /* another process can write to the slot */
        rc = deliver_block(s, &own, slot, worker, err);
    }
    pb_work_end();
    atomic_fetch_add(&s->write.busy_ns, pb_clock_mono_ns() - start);
    if (rc < 0)
        return pb_fail(err, PB_E_OUTPUT_WRITE, "a product could not take a block");
    atomic_fetch_add(&s->write.tiles, head.n_tiles);
    atomic_fetch_add(&s->write.bytes, slot->bytes - PB_BLOCK_SLOT_HEAD);
    rc = wic_release(s->out, slot);
    for (uint32_t i = 0; i < head.n_tiles && rc == 0; i++) /* in row order, a tile is a unit */
        pb_in_flight_done(s->in_flight, head.first_tile + i);
    return rc;
}

/* Takes answers of a gate that another process computes. */
static int take_answers(struct pb_stream *s, const struct wic_slot *slot, struct pb_err *err)
{
    /* another process can write to the slot */
    const struct pb_answer_slot got = *(const struct pb_answer_slot *)slot->user;
    int rc = s->answers != NULL && s->gate != NULL && got.n <= 64 ? 0 : -EPROTO;
    for (uint32_t i = 0; i < got.n && rc == 0; i++) {
        const uint32_t number = got.first_tile + i;
        const bool passes = (got.passes >> i & 1) != 0;
        rc = pb_gate_answers_put(s->answers, number, passes);
        if (rc == 0) {
            const struct pb_tile tile = pb_plan_tile(s->plan, number, number);
            pb_gate_count_tile(s->gate, &tile, passes);
        }
    }
    if (rc < 0)
        return pb_fail(err, PB_E_SYSTEM, "answers of a gate arrived that nothing waits for");
    return wic_release(s->out, slot);
}

/* Delivers a tile that a gate has left out: no pixel is valid. */
static int leave_out(struct pb_stream *s, const struct wic_slot *slot, uint32_t worker,
                     struct pb_err *err)
{
    const struct pb_tile tile = *(const struct pb_tile *)slot->user;
    const struct pb_tile_planes nothing = {.data = NULL, .plane_px = 0};
    int rc = pb_stream_deliver(s, &tile, &nothing, worker, err);
    pb_trace_tile(PB_TRACE_TILE_END, tile.number);
    rc = rc ? rc : wic_release(s->out, slot);
    if (rc == 0)
        pb_in_flight_done(s->in_flight, tile.unit);
    return rc;
}

/* Delivers a tile. 0, or a code that ends the thread; *err is filled when a product failed. */
static int write_tile(struct pb_stream *s, const struct wic_slot *slot, uint32_t worker,
                      struct pb_err *err)
{
    const struct pb_tile *tile = slot->user;
    if (tile->number == PB_BLOCK_SLOT_MARK)
        return write_blocks(s, slot, worker, err);
    if (tile->number == PB_ANSWER_SLOT_MARK)
        return take_answers(s, slot, err);
    if (s->answers != NULL && slot->bytes == 0)
        return leave_out(s, slot, worker, err);
    uint32_t unit = tile->unit;
    int rc = pb_stream_write(s, tile, slot->data, slot->bytes, worker, err);
    rc = rc ? rc : wic_release(s->out, slot);
    if (rc == 0)
        pb_in_flight_done(s->in_flight, unit);
    return rc;
}

static int wait_tile(struct pb_stream *s, struct wic_slot *out_slot)
{
    pb_work_begin(PB_WORK_WAIT, 0);
    int rc = wic_wait(s->out, WIC_FOREVER, out_slot);
    pb_work_end();
    pb_stream_trace_slots(s);
    return rc;
}

void pb_writer_run(struct pb_stream *s, uint32_t worker)
{
    struct wic_slot slot;
    struct pb_err err = {0};
    int rc = 0;
    if (s->strips != NULL)
        rc = worker == 0 ? pb_strips_take(s->strips, &err)
                         : pb_strips_write(s->strips, worker - 1, &err);
    while (rc == 0 && (rc = wait_tile(s, &slot)) == 0 &&
           (rc = write_tile(s, &slot, worker, &err)) == 0)
        ;
    pb_in_flight_ended(s->in_flight);
    pb_stream_thread_ended(s, rc, &err);
}
