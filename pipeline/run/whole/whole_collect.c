/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Collector: copies encoded blocks to slots of results, as many as a slot holds, and uncompressed
 * blocks that the device leaves to the host. */
#include "pipeline/run/whole/whole_inside.h"
#include "pipeline/plan/staged.h"

#include "config/base/clock.h"

#include <errno.h>
#include <string.h>

enum { UNDER_WAY = WHOLE_DOWNS };

/* Slots with copies of blocks in flight, the oldest first. */
struct collector {
    struct pb_exec_whole *e;
    struct wic_slot slot[UNDER_WAY];
    uint64_t bytes[UNDER_WAY];
    uint32_t first, n;
};

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
static int settle(struct collector *c, struct pb_err *err)
{
    struct pb_exec_whole *e = c->e;
    const uint32_t i = c->first % UNDER_WAY;
    int rc = whole_wait_event(e, whole_event_down(e, i), PB_DEVICE_WAIT_COLLECT_COPY,
                              "copying blocks out", err);
    rc = rc ? rc : wic_publish(e->stream->out, &c->slot[i], (size_t)c->bytes[i]);
    c->first++;
    c->n--;
    return rc;
}

static void list_blocks(const struct pb_exec_whole *e, const struct found *f, uint32_t begin,
                        uint32_t end, struct pb_block_entry *out)
{
    for (uint32_t i = begin; i < end; i++)
        out[i - begin] = (struct pb_block_entry){
            .product = e->out.made[f->note->made].plan->product,
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
static int take_slot(struct collector *c, struct wic_slot *out, struct pb_err *err)
{
    int rc = c->n == UNDER_WAY ? settle(c, err) : 0;
    while (rc == 0 && c->n > 0) {
        rc = wic_acquire(c->e->stream->out, 0, out);
        if (rc != -ETIMEDOUT)
            return rc;
        rc = settle(c, err);
    }
    const uint64_t since = pb_clock_mono_ns();
    rc = rc ? rc : wic_acquire(c->e->stream->out, WIC_FOREVER, out);
    whole_waited(c->e, PB_DEVICE_WAIT_COLLECT_SLOT, since);
    return rc;
}

/* Copies the adjacent blocks begin .. end to a slot. */
static int bring(struct collector *c, const struct found *f, uint32_t begin, uint32_t end,
                 struct pb_err *err)
{
    struct pb_exec_whole *e = c->e;
    const unsigned char *from = place(f, begin);
    const size_t bytes = (size_t)(place(f, end - 1) + bytes_of(f, end - 1) - from);
    struct wic_slot taken = {.user = NULL}, *slot;
    int rc = take_slot(c, &taken, err);
    if (rc != 0)
        return rc;
    const uint32_t i = (c->first + c->n) % UNDER_WAY;
    slot = &c->slot[i];
    *slot = taken;
    *(struct pb_block_slot *)slot->user =
        (struct pb_block_slot){.mark = PB_BLOCK_SLOT_MARK, .n = end - begin};
    if (end == f->note->n) {
        ((struct pb_block_slot *)slot->user)->first_tile = f->note->first_tile;
        ((struct pb_block_slot *)slot->user)->n_tiles = f->note->n_tiles;
    }
    list_blocks(e, f, begin, end, slot->data);
    c->bytes[i] = PB_BLOCK_SLOT_HEAD + bytes;
    c->n++;
    e->block_bytes += bytes;
    rc = e->ops->copy(e->device, QUEUE_DOWN, (unsigned char *)slot->data + PB_BLOCK_SLOT_HEAD, from,
                      bytes, err);
    return rc ? rc : e->ops->mark(e->device, QUEUE_DOWN, whole_event_down(e, i), err);
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
static int bring_none(struct collector *c, const struct whole_batch_note *note, struct pb_err *err)
{
    struct wic_slot slot = {.user = NULL};
    int rc = take_slot(c, &slot, err);
    if (rc != 0)
        return rc;
    *(struct pb_block_slot *)slot.user = (struct pb_block_slot){
        .mark = PB_BLOCK_SLOT_MARK, .first_tile = note->first_tile, .n_tiles = note->n_tiles};
    return wic_publish(c->e->stream->out, &slot, PB_BLOCK_SLOT_HEAD);
}

static int collect_batch(struct collector *c, const struct wic_slot *slot, struct pb_err *err)
{
    struct pb_exec_whole *e = c->e;
    const struct whole_batch_note *note = slot->user;
    const struct whole_batch *batch = &e->out.batch[slot->index];
    const struct pb_encode_format format =
        pb_plan_out_format(e->out.made[note->made].plan, note->layer);
    struct found f = {note, batch, (const void *)(batch->told + WHOLE_FOUND_AT), {.bytes = 0}};
    const bool parts = e->out.made[note->made].plan->blocks.parts; /* parts are never raw */
    int rc = parts || note->n == 0 ? 0 : pb_encode_measure(&format, note->n, &f.needs);
    rc = rc ? rc
            : whole_wait_event(e, whole_event_batch(e, slot->index), PB_DEVICE_WAIT_COLLECT_DONE,
                               "encoding blocks", err);
    rc = rc ? rc
            : whole_note_work(e, PB_DEVICE_ENCODE, whole_event_encoding(e, slot->index),
                              whole_event_batch(e, slot->index), err);
    for (uint32_t i = 0; i < note->n && rc == 0;) {
        const uint32_t end = end_of(e, &f, i);
        if (end == i)
            return pb_fail(err, PB_E_DEVICE_FAILED, "the GPU made a block that is too large");
        rc = bring(c, &f, i, end, err);
        i = end;
    }
    while (rc == 0 && c->n > 0)
        rc = settle(c, err);
    rc = rc == 0 && note->n == 0 ? bring_none(c, note, err) : rc;
    return rc ? rc : wic_release(e->batches.channel, slot);
}

int whole_collect(struct pb_exec_whole *e, struct pb_err *err)
{
    struct collector c = {.e = e};
    struct wic_slot slot;
    uint64_t since = pb_clock_mono_ns();
    int rc = 0;
    while (rc == 0 && (rc = wic_wait(e->batches.channel, WIC_FOREVER, &slot)) == 0) {
        whole_waited(e, PB_DEVICE_WAIT_COLLECT_BATCH, since);
        rc = collect_batch(&c, &slot, err);
        since = pb_clock_mono_ns();
    }
    whole_waited(e, PB_DEVICE_WAIT_COLLECT_BATCH, since);
    return rc == -EPIPE ? 0 : rc;
}
