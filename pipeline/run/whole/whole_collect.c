/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Collector: copies encoded blocks to slots of results, as many as a slot holds, and uncompressed
 * blocks that the device leaves to the host. */
#include "pipeline/run/whole/whole_inside.h"
#include "pipeline/plan/staged.h"

#include "config/base/clock.h"

#include <errno.h>
#include <string.h>

/* An encoded batch. */
struct found {
    const struct whole_batch_note *note;
    const struct whole_batch *batch;
    const struct pb_encoded *encoded;
    struct pb_encode_needs needs;
};

static bool is_raw(const struct found *f, uint32_t i)
{
    return f->encoded[i].state != PB_ENCODED;
}

/* Device address of block i. */
static const unsigned char *place(const struct found *f, uint32_t i)
{
    return is_raw(f, i) ? f->batch->workspace + f->needs.raw_at + i * f->needs.raw_stride
                        : f->batch->encoded + f->encoded[i].at;
}

static uint64_t bytes_of(const struct found *f, uint32_t i)
{
    return is_raw(f, i) ? f->needs.raw_bytes : f->encoded[i].bytes;
}

/* Hands the oldest slot in flight to the writers. */
static int settle(struct pb_exec_whole *e, struct pb_err *err)
{
    const uint32_t i = e->collect.first % WHOLE_DOWNS;
    int rc = whole_wait_event(e, whole_event(e, EVENT_DOWN, i), PB_DEVICE_WAIT_COLLECT_COPY,
                              "copying blocks out", err);
    rc = rc ? rc : whole_send_result(e, &e->collect.slot[i], (size_t)e->collect.bytes[i]);
    e->collect.first++;
    e->collect.n--;
    return rc;
}

static void list_blocks(const struct pb_exec_whole *e, const struct found *f, uint32_t begin,
                        uint32_t end, struct pb_block_entry *out)
{
    for (uint32_t i = begin; i < end; i++)
        out[i - begin] = (struct pb_block_entry){
            .product = e->map.plan->engine.out.made[f->note->made].product,
            .level = f->batch->block[i].level,
            .col = f->batch->block[i].col,
            .row = f->batch->block[i].row,
            .is_mask = f->note->layer,
            .is_raw = is_raw(f, i),
            .at = PB_BLOCK_SLOT_HEAD + (uint64_t)(place(f, i) - place(f, begin)),
            .bytes = bytes_of(f, i),
            .moved = f->encoded[i].moved,
        };
}

/* Takes a free slot of results. Consumers take slots in their order, therefore it publishes the
 * slots in flight, oldest first, before it waits for a free one. */
static int take_slot(struct pb_exec_whole *e, struct wic_slot *out, struct pb_err *err)
{
    int rc = e->collect.n == WHOLE_DOWNS ? settle(e, err) : 0;
    while (rc == 0 && e->collect.n > 0) {
        rc = whole_take_result(e, 0, out);
        if (rc != -ETIMEDOUT)
            return rc;
        rc = settle(e, err);
    }
    const uint64_t since = pb_clock_mono_ns();
    rc = rc ? rc : whole_take_result(e, WIC_FOREVER, out);
    whole_waited(e, PB_DEVICE_WAIT_COLLECT_SLOT, since);
    return rc;
}

/* Copies the adjacent blocks begin .. end to a slot. */
static int bring(struct pb_exec_whole *e, const struct found *f, uint32_t begin, uint32_t end,
                 struct pb_err *err)
{
    const unsigned char *from = place(f, begin);
    const size_t bytes = (size_t)(place(f, end - 1) + bytes_of(f, end - 1) - from);
    struct wic_slot taken = {.user = NULL}, *slot;
    int rc = take_slot(e, &taken, err);
    if (rc != 0)
        return rc;
    const uint32_t i = (e->collect.first + e->collect.n) % WHOLE_DOWNS;
    slot = &e->collect.slot[i];
    *slot = taken;
    *(struct pb_block_slot *)slot->user =
        (struct pb_block_slot){.mark = PB_BLOCK_SLOT_MARK, .n = end - begin};
    if (end == f->note->n) {
        ((struct pb_block_slot *)slot->user)->first_tile = f->note->first_tile;
        ((struct pb_block_slot *)slot->user)->n_tiles = f->note->n_tiles;
    }
    list_blocks(e, f, begin, end, slot->data);
    e->collect.bytes[i] = PB_BLOCK_SLOT_HEAD + bytes;
    e->collect.n++;
    e->collect.block_bytes += bytes;
    rc = e->ops->copy(e->device, QUEUE_DOWN, (unsigned char *)slot->data + PB_BLOCK_SLOT_HEAD, from,
                      bytes, err);
    return rc ? rc : e->ops->mark(e->device, QUEUE_DOWN, whole_event(e, EVENT_DOWN, i), err);
}

/* End of the blocks from `begin` on that fit in a slot. */
static uint32_t end_of(const struct pb_exec_whole *e, const struct found *f, uint32_t begin)
{
    const uint64_t room = e->map.plan->layout.out_slot_bytes - PB_BLOCK_SLOT_HEAD;
    uint32_t end = begin;
    while (end < f->note->n && end - begin < PB_BLOCK_SLOT_MOST &&
           is_raw(f, end) == is_raw(f, begin) &&
           (uint64_t)(place(f, end) - place(f, begin)) + bytes_of(f, end) <= room)
        end++;
    return end;
}

/* Reports a finished row of tiles without any block. */
static int bring_none(struct pb_exec_whole *e, const struct whole_batch_note *note,
                      struct pb_err *err)
{
    struct wic_slot slot = {.user = NULL};
    int rc = take_slot(e, &slot, err);
    if (rc != 0)
        return rc;
    *(struct pb_block_slot *)slot.user = (struct pb_block_slot){
        .mark = PB_BLOCK_SLOT_MARK, .first_tile = note->first_tile, .n_tiles = note->n_tiles};
    return whole_send_result(e, &slot, PB_BLOCK_SLOT_HEAD);
}

static int collect_batch(struct pb_exec_whole *e, const struct wic_slot *slot, struct pb_err *err)
{
    const struct whole_batch_note *note = slot->user;
    const struct whole_batch *batch = &e->batch[slot->index];
    const struct pb_plan_made *made = &e->map.plan->engine.out.made[note->made];
    const struct pb_encode_format format = pb_plan_out_format(made, note->layer);
    struct found f = {note, batch, (const void *)(batch->told + WHOLE_FOUND_AT), {.bytes = 0}};
    const bool parts = made->blocks.parts; /* parts are never raw */
    int rc = parts || note->n == 0 ? 0 : pb_encode_measure(&format, note->n, &f.needs);
    rc = rc ? rc
            : whole_wait_event(e, whole_event(e, EVENT_BATCH, slot->index),
                               PB_DEVICE_WAIT_COLLECT_DONE, "encoding blocks", err);
    rc = rc ? rc
            : whole_note_work(e, PB_DEVICE_ENCODE, whole_event(e, EVENT_ENCODING, slot->index),
                              whole_event(e, EVENT_BATCH, slot->index), err);
    for (uint32_t i = 0; i < note->n && rc == 0;) {
        const uint32_t end = end_of(e, &f, i);
        if (end == i)
            return pb_fail(err, PB_E_DEVICE_FAILED, "the GPU made a block that is too large");
        rc = bring(e, &f, i, end, err);
        i = end;
    }
    while (rc == 0 && e->collect.n > 0)
        rc = settle(e, err);
    rc = rc == 0 && note->n == 0 ? bring_none(e, note, err) : rc;
    return rc ? rc : wic_release(e->link[WHOLE_BATCHES], slot);
}

int whole_collect(struct pb_exec_whole *e, struct pb_err *err)
{
    struct wic_slot slot;
    uint64_t since = pb_clock_mono_ns();
    int rc = 0;
    while (rc == 0 && (rc = wic_wait(e->link[WHOLE_BATCHES], WIC_FOREVER, &slot)) == 0) {
        whole_waited(e, PB_DEVICE_WAIT_COLLECT_BATCH, since);
        rc = collect_batch(e, &slot, err);
        since = pb_clock_mono_ns();
    }
    whole_waited(e, PB_DEVICE_WAIT_COLLECT_BATCH, since);
    return rc == -EPIPE ? 0 : rc;
}
