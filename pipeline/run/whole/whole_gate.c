/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The gate of a pass on the device. When the groups of the gate's pieces of some tiles are decoded,
 * the gate's chain makes a plane for each of them, and the passing pixels are counted. The answers
 * steer the readers (run/stream/gate_answers.h); to those of another process they are sent in a
 * slot of results. A tile that does not pass is delivered without any pixel. */
#include "pipeline/run/whole/whole_inside.h"

#include "pipeline/plan/layout.h"
#include "pipeline/profile/trace.h"
#include "pipeline/run/stream/block_slot.h"
#include "pipeline/run/stream/gate.h"
#include "pipeline/run/stream/gate_answers.h"

#include <errno.h>
#include <math.h>

_Static_assert(PB_GATE_BATCH <= 64, "a slot has an answer in each bit of a word");

/* A batch of tiles. */
struct batch {
    uint32_t first, n;
    struct pb_plan_gate_look look[PB_GATE_BATCH];
    uint32_t n_planes;
    uint32_t plane[PB_GATE_BATCH]; /* index of each tile's plane */
};

static const struct pb_plan *plan_of(const struct pb_exec_whole *e)
{
    return e->map.plan;
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Makes a plane of a tile that is invalid everywhere, for products that are made on the device. */
static int make_nothing(struct pb_exec_whole *e, struct pb_err *err)
{
    const size_t side = (size_t)plan_of(e)->layout.grid.side_px;
    const size_t px = pb_slot_align(side * side, PB_OUT_ALIGN);
    void *table = NULL, *memory = NULL;
    if (plan_of(e)->engine.out.n == 0)
        return 0;
    int rc = e->ops->table(e->device, px * sizeof(float), err, &table);
    rc = rc ? rc : e->ops->memory(e->device, px * sizeof(float), err, &memory);
    for (size_t i = 0; i < px && rc == 0; i++)
        ((float *)table)[i] = NAN;
    e->dispatch.gate.nothing = memory;
    rc = rc ? rc : e->ops->copy(e->device, QUEUE_GATE, memory, table, px * sizeof(float), err);
    rc = rc ? rc : e->ops->mark(e->device, QUEUE_GATE, whole_event(e, EVENT_GATE, 0), err);
    return rc ? rc
              : whole_wait_event(e, whole_event(e, EVENT_GATE, 0), PB_DEVICE_WAIT_DISPATCH_DECODE,
                                 "making an empty plane", err);
}

int whole_gate_open(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan *plan = plan_of(e);
    void *memory[4] = {NULL};
    if (plan->layout.gate.chain == NULL)
        return 0;
    const struct pb_rect most = pb_plan_gate_most(plan);
    e->dispatch.gate.plane_px = (size_t)most.w * (size_t)most.h;
    int rc = e->ops->memory(e->device, PB_GATE_BATCH * e->dispatch.gate.plane_px * sizeof(float),
                            err, &memory[0]);
    rc = rc ? rc : e->ops->memory(e->device, PB_GATE_BATCH * sizeof(uint32_t), err, &memory[1]);
    rc = rc ? rc : e->ops->table(e->device, PB_GATE_BATCH * sizeof(uint32_t), err, &memory[2]);
    rc = rc ? rc
            : e->ops->table(e->device, PB_GATE_BATCH * sizeof(struct pb_statistics_plane), err,
                            &memory[3]);
    e->dispatch.gate.planes = memory[0];
    e->dispatch.gate.counts = memory[1];
    e->dispatch.gate.told = memory[2];
    e->dispatch.gate.list = memory[3];
    return rc ? rc : make_nothing(e, err);
}

/* --- answers --------------------------------------------------------------------------------- */

/* True if the pixels are decoded that the gate of the tile needs. */
static bool is_ready(const struct pb_exec_whole *e, uint32_t tile)
{
    return tile < e->map.n_tiles && e->dispatch.shared_bands > 0 &&
           e->dispatch.decoded_groups >= pb_whole_map_need(&e->map, tile, 0);
}

/* Queues the gate of a tile, whose plane is the next one of the batch. */
static int queue_look(struct pb_exec_whole *e, struct batch *batch,
                      const struct pb_plan_gate_look *look, struct pb_err *err)
{
    const struct pb_plan *plan = plan_of(e);
    const struct pb_rect *all = &look->first.core, *part = &look->part;
    float *plane = e->dispatch.gate.planes + batch->n_planes * e->dispatch.gate.plane_px;
    const struct pb_tile_out out = {plane, (size_t)all->w * (size_t)all->h};
    struct pb_tile_in in = {.core = *all};
    for (uint32_t w = 0; w < PB_SOURCES_MAX; w++)
        in.window[w] = whole_window(e, w, 0, &look->first.read[w]);
    in = pb_plan_gate_view(plan, &in, &plan->layout.format);
    e->dispatch.gate.list[batch->n_planes++] = (struct pb_statistics_plane){
        .data = plane + (size_t)(part->y - all->y) * (size_t)all->w + (size_t)(part->x - all->x),
        .row_px = (uint32_t)all->w,
        .w = part->w,
        .h = part->h};
    return e->ops->gate(e->device, QUEUE_GATE, &in, &out, err);
}

static int hold_and_queue(struct pb_exec_whole *e, struct batch *batch,
                          const struct pb_plan_gate_look *look, struct pb_err *err)
{
    int rc = whole_planes_hold_gate(e, &look->first, batch->n_planes == 0, err);
    return rc ? rc : queue_look(e, batch, look, err);
}

/* Releases the planes that the batch has read. */
static void release_looks(struct pb_exec_whole *e, const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++)
        if (batch->look[i].part.w > 0)
            whole_planes_release_gate(e, &batch->look[i].first);
}

static int count_passing(struct pb_exec_whole *e, const struct batch *batch, struct pb_err *err)
{
    const size_t bytes = batch->n_planes * sizeof *e->dispatch.gate.counts;
    if (batch->n_planes == 0)
        return 0;
    int rc = e->ops->passing(e->device, QUEUE_GATE, e->dispatch.gate.list, batch->n_planes,
                             e->dispatch.gate.plane_px, e->dispatch.gate.counts, err);
    rc = rc ? rc
            : e->ops->copy(e->device, QUEUE_GATE, e->dispatch.gate.told, e->dispatch.gate.counts,
                           bytes, err);
    rc = rc ? rc : e->ops->mark(e->device, QUEUE_GATE, whole_event(e, EVENT_GATE, 0), err);
    return rc ? rc
              : whole_wait_event(e, whole_event(e, EVENT_GATE, 0), PB_DEVICE_WAIT_DISPATCH_DECODE,
                                 "computing the gate", err);
}

/* Sends the answers to the process that has the files. */
static int send_answers(struct pb_exec_whole *e, const struct batch *batch, uint64_t passes)
{
    struct wic_slot slot;
    int rc = whole_take_result(e, WIC_FOREVER, &slot);
    if (rc < 0)
        return rc;
    *(struct pb_answer_slot *)slot.user = (struct pb_answer_slot){
        .mark = PB_ANSWER_SLOT_MARK, .first_tile = batch->first, .n = batch->n, .passes = passes};
    return whole_send_result(e, &slot, 0);
}

static int put_answers(struct pb_exec_whole *e, const struct batch *batch, struct pb_err *err)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct pb_plan_gate_look *look = &batch->look[i];
        const uint32_t number = batch->first + i;
        const struct pb_tile tile = pb_plan_tile(plan_of(e), number, number);
        const bool passes =
            look->part.w > 0 && e->dispatch.gate.told[batch->plane[i]] >= look->enough;
        bits |= (uint64_t)passes << i;
        if (pb_gate_answers_put(e->stream->answers, number, passes) < 0)
            return pb_fail(err, PB_E_SYSTEM, "the gate of tile %u was computed twice", number);
        if (e->stream->gate != NULL)
            pb_gate_count_tile(e->stream->gate, &tile, passes);
    }
    return e->stream->whole_blocks != NULL ? send_answers(e, batch, bits) : 0;
}

static int ask_batch(struct pb_exec_whole *e, struct pb_err *err)
{
    struct batch batch = {.first = e->dispatch.gate.asked};
    int rc = 0;
    for (; rc == 0 && batch.n < PB_GATE_BATCH && is_ready(e, batch.first + batch.n); batch.n++) {
        const uint32_t number = batch.first + batch.n;
        const struct pb_tile tile = pb_plan_tile(plan_of(e), number, number);
        struct pb_plan_gate_look *look = &batch.look[batch.n];
        *look = pb_plan_gate_look(plan_of(e), &tile);
        batch.plane[batch.n] = batch.n_planes;
        if (look->part.w > 0)
            rc = hold_and_queue(e, &batch, look, err);
        if (rc == -EAGAIN) /* the planes on the device are those of the batch so far */
            break;
    }
    rc = rc == -EAGAIN ? 0 : rc;
    rc = rc ? rc : count_passing(e, &batch, err);
    if (rc == 0)
        release_looks(e, &batch);
    rc = rc ? rc : put_answers(e, &batch, err);
    e->dispatch.gate.asked += batch.n;
    return rc;
}

int whole_gate_answer(struct pb_exec_whole *e, struct pb_err *err)
{
    int rc = 0;
    while (rc == 0 && plan_of(e)->layout.gate.chain != NULL && is_ready(e, e->dispatch.gate.asked))
        rc = ask_batch(e, err);
    return rc;
}

/* --- tiles that are left out ------------------------------------------------------------------ */

/* Makes the tile's planes invalid for the products that are made of its row. */
static int clear_planes(struct pb_exec_whole *e, const struct pb_tile *tile, struct pb_err *err)
{
    const size_t px = pb_tile_out_px(tile);
    float *planes = whole_out_place(e, tile->number);
    int rc = planes != NULL ? whole_out_before(e, 0, tile->number, err) : 0;
    for (size_t i = 0; planes != NULL && i < plan_of(e)->work.outputs.n && rc == 0; i++)
        rc = e->ops->copy(e->device, QUEUE_LANE, planes + i * px, e->dispatch.gate.nothing,
                          px * sizeof *planes, err);
    return rc;
}

int whole_gate_leave_out(struct pb_exec_whole *e, const struct pb_tile *tile, struct pb_err *err)
{
    struct wic_slot slot;
    int rc = clear_planes(e, tile, err);
    if (rc == 0 && pb_plan_out_has_planes(plan_of(e)) &&
        (rc = whole_take_result(e, WIC_FOREVER, &slot)) == 0) {
        *(struct pb_tile *)slot.user = *tile;
        rc = whole_send_result(e, &slot, 0);
    }
    pb_trace_tile(PB_TRACE_READY, tile->number);
    return rc ? rc : whole_out_after(e, tile->number, err);
}
