/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Finished tiles are handed to every sink. A writer thread takes them from the channel behind an
 * executor and gives the slots back. */
#include "pipeline/run/stream.h"
#include "pipeline/run/rests.h"

#include "config/base/clock.h"
#include "pipeline/profile/trace.h"

int pb_stream_deliver(struct pb_stream *s, const struct pb_tile *tile,
                      const struct pb_tile_planes *pixels, uint32_t worker, struct pb_err *err)
{
    uint64_t start = pb_clock_mono_ns();
    int rc = 0;
    pb_work_begin(PB_WORK_DELIVER, tile->number);
    for (size_t i = 0; i < s->n_sinks && rc >= 0; i++) {
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
    /* Pairs with the store before the round: what was set for it is seen, whoever computed. */
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

/* 0, or what ends the thread; *err is filled when a product failed. */
static int write_tile(struct pb_stream *s, const struct wic_slot *slot, uint32_t worker,
                      struct pb_err *err)
{
    const struct pb_tile *tile = slot->user;
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
    int rc;
    while ((rc = wait_tile(s, &slot)) == 0 && (rc = write_tile(s, &slot, worker, &err)) == 0)
        ;
    pb_in_flight_ended(s->in_flight);
    pb_stream_thread_ended(s, rc, &err);
}
