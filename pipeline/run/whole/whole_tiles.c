/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Dispatcher and finisher. Pixels that a band shares with the one before are copied after that band
 * is decoded and checked. A tile's chain is queued after its groups are decoded and their results
 * are checked: no pixel of a damaged block reaches a product. */
#include "pipeline/run/whole/whole_inside.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/staged.h"

#include "config/base/clock.h"
#include "pipeline/profile/trace.h"
#include "pipeline/run/stream/gate_answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- dispatcher ------------------------------------------------------------------------------ */

/* Count of rows of a band above `end_row`. */
static int32_t rows_above(const struct pb_whole_band *band, uint32_t w, int32_t end_row)
{
    int32_t rows = end_row - band->y[w];
    return rows < band->h[w] ? rows : band->h[w];
}

/* Copies rows of a plane from one band's memory to that of the next. */
static int share_rows(struct pb_exec_whole *e, uint32_t band, uint32_t w, uint64_t at,
                      uint64_t row_bytes, int32_t rows, struct pb_err *err)
{
    const struct pb_whole_band *to = &e->map.band[band], *from = to - 1;
    if (rows <= 0)
        return 0;
    return e->ops->copy(e->device, QUEUE_SHARE, e->room[band % 2].pixels + at,
                        e->room[(band - 1) % 2].pixels + at +
                            (uint64_t)(to->y[w] - from->y[w]) * row_bytes,
                        (size_t)((uint64_t)rows * row_bytes), err);
}

/* Copies the rows of a source that two bands share: only decoded ones, because the next pieces
 * may be in progress already. */
static int share_source(struct pb_exec_whole *e, uint32_t band, size_t i, struct pb_err *err)
{
    const struct pb_plan_source *source = &e->map.plan->work.source[i];
    const struct pb_whole_band *to = &e->map.band[band], *from = to - 1;
    const uint32_t w = source->window;
    const struct pb_whole_window *window = &e->map.window[w];
    int rc = 0;
    for (size_t p = source->plane; p < source->plane + source->n_bands && rc == 0; p++)
        rc = share_rows(e, band, w, window->at + p * window->plane_bytes, window->row_bytes,
                        rows_above(to, w, from->end_row[i]), err);
    if (rc == 0 && window->mask_row_bytes > 0)
        rc = share_rows(e, band, w, window->mask_at, window->mask_row_bytes,
                        rows_above(to, w, from->mask_end_row[i]), err);
    return rc;
}

/* Reports to the finisher that the band after `band` has copied the pixels that they share. */
static int send_shared(struct pb_exec_whole *e, uint32_t band)
{
    struct wic_slot slot;
    uint64_t since = pb_clock_mono_ns();
    int rc = wic_acquire(e->link[WHOLE_FLIGHTS], WIC_FOREVER, &slot);
    whole_waited(e, PB_DEVICE_WAIT_DISPATCH_SLOT, since);
    if (rc < 0)
        return rc;
    *(struct whole_flight *)slot.user = (struct whole_flight){.band = band};
    return wic_publish(e->link[WHOLE_FLIGHTS], &slot, 0);
}

/* Copies the shared rows of a band after the one before is decoded; for the first band, from the
 * pass before. */
static int share(struct pb_exec_whole *e, uint32_t band, struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < e->map.plan->work.n_sources && band > 0 && rc == 0; i++)
        rc = share_source(e, band, i, err);
    if (band == 0)
        rc = pb_whole_kept_copy(e, err);
    rc = rc ? rc : e->ops->mark(e->device, QUEUE_SHARE, whole_event(e, EVENT_SHARED, 0), err);
    rc = rc ? rc
            : whole_wait_event(e, whole_event(e, EVENT_SHARED, 0), PB_DEVICE_WAIT_DISPATCH_DECODE,
                               "copying pixels of blocks", err);
    e->dispatch.shared_bands = band + 1;
    rc = rc == 0 && band > 0 ? send_shared(e, band - 1) : rc;
    return rc ? rc : whole_gate_answer(e, err);
}

static int take_group(struct pb_exec_whole *e, uint32_t group, struct pb_err *err)
{
    int rc = whole_wait_event(e, whole_event(e, EVENT_DECODED, group),
                              PB_DEVICE_WAIT_DISPATCH_DECODE, "decoding blocks", err);
    rc = rc ? rc
            : whole_note_work(e, PB_DEVICE_DECODE, whole_event(e, EVENT_DECODING, group),
                              whole_event(e, EVENT_DECODED, group), err);
    rc = rc ? rc : whole_tables_check(e, group, err);
    rc = rc ? rc : whole_planes_release_group(e, group);
    e->dispatch.decoded_groups = group + 1;
    if (rc == 0)
        whole_note_decoded(e, group);
    return rc ? rc : whole_gate_answer(e, err);
}

static int take_step(struct pb_exec_whole *e, struct pb_err *err)
{
    struct wic_slot slot;
    uint64_t since = pb_clock_mono_ns();
    whole_planes_starve(e, true);
    int rc = wic_wait(e->link[WHOLE_STEPS], WIC_FOREVER, &slot);
    whole_planes_starve(e, false);
    whole_waited(e, PB_DEVICE_WAIT_DISPATCH_BLOCKS, since);
    if (rc < 0)
        return rc;
    struct whole_step step = *(const struct whole_step *)slot.user;
    if (step.kind == WHOLE_ROUND && !e->dispatch.round_is_over)
        return pb_fail(err, PB_E_SYSTEM, "a round began before the one before it was computed");
    if (step.kind == WHOLE_ROUND)
        memcpy(e->dispatch.head, slot.data, e->map.plan->layout.format.head_bytes);
    rc = wic_release(e->link[WHOLE_STEPS], &slot);
    if (rc < 0)
        return rc;
    if (step.kind == WHOLE_ROUND)
        e->dispatch.round = step.number;
    return step.kind == WHOLE_BAND    ? share(e, step.number, err)
           : step.kind == WHOLE_GROUP ? take_group(e, step.number, err)
                                      : 0;
}

static uint32_t band_of(const struct pb_exec_whole *e, uint32_t tile)
{
    uint32_t each = e->map.band[0].end;
    return tile / each;
}

struct pb_window whole_window(const struct pb_exec_whole *e, uint32_t w, uint32_t band,
                              const struct pb_rect *rect)
{
    const struct pb_slot_format *format = &e->map.plan->layout.format;
    const struct pb_whole_window *window = &e->map.window[w];
    if (!pb_slot_is_read(&format->source[w], rect))
        return (struct pb_window){.data = NULL};
    uint64_t row = (uint64_t)(rect->y - e->map.band[band].y[w]), x = (uint64_t)rect->x;
    unsigned char *pixels = e->room[band % 2].pixels;
    return (struct pb_window){
        .data = pixels + window->at + row * window->row_bytes + x * format->source[w].sample_bytes,
        .row_bytes = window->row_bytes,
        .plane_bytes = window->plane_bytes,
        .mask = window->mask_row_bytes > 0
                    ? pixels + window->mask_at + row * window->mask_row_bytes + x
                    : NULL,
        .mask_row_bytes = window->mask_row_bytes,
        .rect = *rect,
    };
}

/* Describes the tile's pixels in device memory. */
static void view(const struct pb_exec_whole *e, const struct pb_tile *tile, uint32_t band,
                 struct pb_tile_in *out)
{
    const struct pb_slot_format *format = &e->map.plan->layout.format;
    *out = (struct pb_tile_in){
        .core = tile->core, .image_w = format->image_w, .image_h = format->image_h};
    for (uint32_t w = 0; w < PB_SOURCES_MAX; w++)
        out->window[w] = whole_window(e, w, band, &tile->read[w]);
}

static int compute_tile(struct pb_exec_whole *e, uint32_t lane, const struct pb_tile_in *in,
                        const struct pb_tile_out *out, struct pb_err *err)
{
    if (e->dispatch.head != NULL)
        return e->ops->sums(e->device, lane, e->dispatch.head, in, (int32_t *)(void *)out->data,
                            err);
    return e->ops->tile(e->device, lane, in, out, err);
}

/* Copies sums of the tile, or the planes that the host needs, to their places in the slot. */
static int bring_planes(struct pb_exec_whole *e, uint32_t lane, const struct pb_tile_out *from,
                        const struct wic_slot *to, struct pb_err *err)
{
    const struct pb_plan *plan = e->map.plan;
    const size_t plane = from->plane_px;
    uint32_t n = (uint32_t)plan->work.outputs.n, first = 0;
    int rc = 0;
    if (e->dispatch.head != NULL) {
        e->dispatch.out_bytes += to->bytes;
        return e->ops->copy(e->device, QUEUE_LANE + lane, to->data, from->data, to->bytes, err);
    }
    while (first < n && rc == 0) {
        uint32_t end = first;
        while (end < n && pb_plan_out_has_plane(plan, end))
            end++;
        if (end > first)
            rc = e->ops->copy(e->device, QUEUE_LANE + lane, (float *)to->data + first * plane,
                              from->data + first * plane, (end - first) * plane * sizeof(float),
                              err);
        e->dispatch.out_bytes += (end - first) * plane * sizeof(float);
        first = end > first ? end : first + 1;
    }
    return rc;
}

static int queue_tile(struct pb_exec_whole *e, uint32_t number, const struct pb_tile *tile,
                      struct whole_flight *flight, struct pb_err *err)
{
    const uint32_t lane = number % e->n_lanes;
    struct pb_tile_in in;
    struct pb_tile_out out = {.data = whole_out_place(e, tile->number),
                              .plane_px = pb_tile_out_px(tile)};
    const bool has_planes = pb_plan_out_has_planes(e->map.plan),
               in_place = out.data == NULL && has_planes && e->map.plan->engine.whole.in_place;
    if (out.data == NULL)
        out.data = e->dispatch.lane_out[lane];
    view(e, tile, flight->band, &in);
    int rc = in_place ? e->ops->seen(e->device, flight->out.data, err, (void **)&out.data) : 0;
    rc = rc ? rc : whole_planes_hold_tile(e, tile, QUEUE_LANE + lane, err);
    rc = rc ? rc : whole_out_before(e, lane, tile->number, err);
    rc = rc ? rc
            : e->ops->mark(e->device, QUEUE_LANE + lane, whole_event(e, EVENT_BEGUN, number), err);
    rc = rc ? rc : compute_tile(e, lane, &in, &out, err);
    rc = rc ? rc : whole_reduce_tile(e, lane, number, tile, &out, err);
    rc = rc ? rc : whole_valid_look(e, lane, number, tile, &out, err);
    if (rc == 0 && has_planes) {
        flight->out.bytes = pb_plan_out_bytes(e->map.plan, tile);
        *(struct pb_tile *)flight->out.user = *tile;
        rc = in_place ? 0 : bring_planes(e, lane, &out, &flight->out, err);
    }
    return rc ? rc
              : e->ops->mark(e->device, QUEUE_LANE + lane, whole_event(e, EVENT_FLIGHT, number),
                             err);
}

/* Takes steps until the part of the tile is decoded. */
static int take_part(struct pb_exec_whole *e, const struct pb_tile *tile, uint32_t part,
                     struct pb_err *err)
{
    const uint32_t band = band_of(e, tile->number);
    int rc = 0;
    while (rc == 0 && (e->dispatch.shared_bands <= band ||
                       e->dispatch.decoded_groups < pb_whole_map_need(&e->map, tile->number, part)))
        rc = take_step(e, err);
    return rc;
}

/* Takes steps until the gate has the answer for the tile. */
static int take_answer(struct pb_exec_whole *e, const struct pb_tile *tile, bool *out_passes,
                       struct pb_err *err)
{
    int rc = 0;
    while (rc == 0 && e->dispatch.gate.asked <= tile->number)
        rc = take_step(e, err);
    if (rc == 0)
        *out_passes = pb_gate_answers_passes(e->stream->answers, tile->number);
    return rc;
}

/* Takes the parts of a tile as the pattern's schedule sends them, up to the step of its result. */
static int take_parts(struct pb_exec_whole *e, struct pb_tile *tile, bool *out_passes,
                      struct pb_err *err)
{
    const bool gated = e->map.plan->layout.gate.chain != NULL;
    uint32_t part = 0;
    int rc;
    tile->parts = 0;
    *out_passes = true;
    while ((rc = pb_part_exchange_next(&e->dispatch.parts, !*out_passes, &part, err)) == 1) {
        rc = gated && part == 0 ? take_answer(e, tile, out_passes, err)
                                : take_part(e, tile, part, err);
        if (rc < 0)
            return rc;
        tile->parts++;
    }
    return rc;
}

static int dispatch_tile(struct pb_exec_whole *e, struct pb_tile *tile, struct pb_err *err)
{
    struct pb_stream *s = e->stream;
    struct whole_flight flight = {
        .band = band_of(e, tile->number), .tile = tile->number, .is_tile = true};
    struct wic_slot slot = {.user = NULL};
    bool passes = true;
    int rc = take_parts(e, tile, &passes, err);
    rc = rc ? rc : pb_arrivals_note(s->arrivals, tile, err);
    if (rc == 0 && !passes)
        return whole_gate_leave_out(e, tile, err);
    uint64_t since = pb_clock_mono_ns();
    if (rc == 0 && pb_plan_out_has_planes(e->map.plan))
        rc = whole_take_result(e, WIC_FOREVER, &flight.out);
    rc = rc ? rc : wic_acquire(e->link[WHOLE_FLIGHTS], WIC_FOREVER, &slot);
    whole_waited(e, PB_DEVICE_WAIT_DISPATCH_SLOT, since);
    if (rc != 0)
        return rc;
    uint64_t start = pb_clock_mono_ns();
    pb_trace_tile(PB_TRACE_READY, tile->number);
    rc = queue_tile(e, slot.index, tile, &flight, err);
    *(struct whole_flight *)slot.user = flight;
    atomic_fetch_add(&s->compute.busy_ns, pb_clock_mono_ns() - start);
    atomic_fetch_add(&s->read.tiles, 1);
    rc = rc ? rc : wic_publish(e->link[WHOLE_FLIGHTS], &slot, 0);
    /* No slot of results is held here: the collector may wait for one. */
    return rc ? rc : whole_out_after(e, tile->number, err);
}

/* Waits for the next round. -EPIPE: there is no other one. */
static int await_round(struct pb_exec_whole *e, struct pb_err *err)
{
    const uint32_t round = e->dispatch.round;
    int rc = 0;
    e->dispatch.round_is_over = true;
    while (rc == 0 && e->dispatch.round == round)
        rc = take_step(e, err);
    return rc;
}

/* Position in the visiting order, and time spent waiting for the window. */
struct turn {
    uint32_t unit, next;
    uint64_t parked;
};

/* Takes the next unit, of the next round after the last one. If the writers are in another process,
 * slots for results limit the units in flight. */
static int take_unit(struct pb_exec_whole *e, struct turn *turn, struct pb_err *err)
{
    struct pb_stream *s = e->stream;
    const uint32_t units = pb_order_units(&e->map.plan->layout.grid, e->map.plan->layout.order);
    int rc = 0;
    if (s->in_flight != NULL)
        return pb_in_flight_take(s->in_flight, &turn->unit, &turn->parked);
    if (turn->next == units) {
        rc = e->dispatch.head != NULL ? await_round(e, err) : -EPIPE;
        turn->next = 0;
    }
    turn->unit = turn->next++;
    return rc;
}

static int dispatch_units(struct pb_exec_whole *e, uint32_t *tiles, struct pb_err *err)
{
    struct pb_stream *s = e->stream;
    const struct pb_plan *plan = e->map.plan;
    struct turn turn = {.next = 0};
    int rc = 0;
    while (rc == 0 && (rc = take_unit(e, &turn, err)) == 0) {
        uint32_t n = pb_order_unit(&plan->layout.grid, plan->layout.order, turn.unit, tiles);
        if (turn.unit == 0)
            whole_rounds_begin(e);
        for (uint32_t i = 0; i < n && rc == 0; i++) {
            struct pb_tile tile = pb_plan_tile(plan, tiles[i], turn.unit);
            pb_trace_tile(PB_TRACE_TILE, tile.number);
            rc = dispatch_tile(e, &tile, err);
        }
    }
    atomic_fetch_add(&s->compute.parked_ns, turn.parked);
    atomic_fetch_add(&e->clock.waited_ns[PB_DEVICE_WAIT_DISPATCH_TURN], turn.parked);
    return rc;
}

int whole_dispatch(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan *plan = e->map.plan;
    uint32_t *tiles =
        calloc(pb_order_unit_max(&plan->layout.grid, plan->layout.order), sizeof *tiles);
    if (tiles == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    int rc = dispatch_units(e, tiles, err);
    free(tiles);
    if (rc != -EPIPE)
        return rc;
    wic_close(e->link[WHOLE_FLIGHTS]);
    wic_close(e->link[WHOLE_BATCHES]);
    /* Groups that only left-out tiles need: the feeder may wait for their memory. */
    while ((rc = take_step(e, err)) == 0)
        continue;
    return rc == -EPIPE ? 0 : rc;
}

/* --- finisher -------------------------------------------------------------------------------- */

/* Counts a finished tile of the band, or that the next band has copied its shared pixels. After the
 * last of these its memory is free for the band after next. */
static int leave_band(struct pb_exec_whole *e, uint32_t band)
{
    struct wic_slot slot;
    if (--e->finish.left[band] > 0 || band + 2 >= e->map.n_bands)
        return 0;
    int rc = wic_acquire(e->link[WHOLE_THROUGH], WIC_FOREVER, &slot);
    return rc ? rc : wic_publish(e->link[WHOLE_THROUGH], &slot, 0);
}

static int finish_tile(struct pb_exec_whole *e, uint32_t number, const struct whole_flight *flight,
                       struct pb_err *err)
{
    struct pb_stream *s = e->stream;
    int rc = whole_wait_event(e, whole_event(e, EVENT_FLIGHT, number), PB_DEVICE_WAIT_FINISH_DONE,
                              "computing a tile", err);
    rc = rc ? rc
            : whole_note_work(e, PB_DEVICE_COMPUTE, whole_event(e, EVENT_BEGUN, number),
                              whole_event(e, EVENT_FLIGHT, number), err);
    if (rc < 0)
        return rc;
    whole_planes_release_tile(e, flight->tile);
    whole_reduce_take(e, number);
    whole_valid_take(e, number);
    e->finish.launched++;
    atomic_fetch_add(&s->compute.tiles, 1);
    atomic_fetch_add(&s->compute.bytes, flight->out.bytes);
    return flight->out.bytes > 0 ? whole_send_result(e, &flight->out, flight->out.bytes) : 0;
}

static int finish_flight(struct pb_exec_whole *e, const struct wic_slot *slot, struct pb_err *err)
{
    const struct whole_flight flight = *(const struct whole_flight *)slot->user;
    int rc = flight.is_tile ? finish_tile(e, slot->index, &flight, err) : 0;
    rc = rc ? rc : wic_release(e->link[WHOLE_FLIGHTS], slot);
    return rc ? rc : leave_band(e, flight.band);
}

int whole_finish(struct pb_exec_whole *e, struct pb_err *err)
{
    struct wic_slot slot;
    uint64_t since = pb_clock_mono_ns();
    int rc = 0;
    while (rc == 0 && (rc = wic_wait(e->link[WHOLE_FLIGHTS], WIC_FOREVER, &slot)) == 0) {
        whole_waited(e, PB_DEVICE_WAIT_FINISH_TILE, since);
        rc = finish_flight(e, &slot, err);
        since = pb_clock_mono_ns();
    }
    return rc == -EPIPE ? whole_reduce_end(e, err) : rc;
}
