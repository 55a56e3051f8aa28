/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Rounds of a pass that a device sums up (pipeline/plan/engine.h). The first round decodes the
 * blocks; all pixels of the scene stay in the one band, and later rounds read nothing. The numbers
 * of a round are in a table that the kernels read. In this process they are the stream's head; in
 * the owner of a device a slot with the head begins each round after the first. */
#include "pipeline/run/whole/whole_inside.h"

#include "pipeline/plan/engine.h"

#include <string.h>

int whole_rounds_open(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan *plan = e->map.plan;
    void *memory = NULL;
    e->dispatch.round = e->feed.sent_round = 1;
    if (plan->layout.sums.chain.n == 0)
        return 0;
    int rc = e->ops->table(e->device, plan->layout.format.head_bytes, err, &memory);
    if (rc < 0)
        return rc;
    e->dispatch.head = memory;
    pb_plan_sums_head(plan, 1, e->dispatch.head);
    return 0;
}

int whole_rounds_take_units(struct pb_stream *s)
{
    uint64_t parked = 0;
    uint32_t unit;
    int rc = 0;
    for (uint32_t n = pb_order_units(&s->plan->layout.grid, s->plan->layout.order);
         n > 0 && rc == 0; n--)
        rc = pb_in_flight_take(s->in_flight, &unit, &parked);
    atomic_fetch_add(&s->read.parked_ns, parked);
    return rc;
}

int whole_rounds_send(struct pb_exec_whole *e)
{
    struct pb_stream *s = e->stream;
    const size_t bytes = s->plan->layout.format.head_bytes;
    struct wic_slot slot;
    int rc = 0;
    while (rc == 0 && (rc = whole_rounds_take_units(s)) == 0 &&
           (rc = wic_acquire(s->in, WIC_FOREVER, &slot)) == 0) {
        memcpy(slot.data, s->head, bytes);
        *(struct whole_round_note *)slot.user =
            (struct whole_round_note){WHOLE_ROUND_MARK, s->head->round};
        rc = wic_publish(s->in, &slot, bytes);
    }
    return rc;
}

int whole_rounds_take(struct pb_exec_whole *e, const struct wic_slot *slot, struct pb_err *err)
{
    const struct whole_round_note note = *(const struct whole_round_note *)slot->user;
    struct pb_whole_load more;
    struct wic_slot step;
    if (e->map.plan->layout.sums.chain.n == 0 || note.round != e->feed.sent_round + 1 ||
        pb_whole_map_load(&e->map, e->feed.sent_pieces, e->map.plan->layout.in_slot_bytes,
                          e->stream->answers, &more) != PB_WHOLE_END)
        return pb_fail(err, PB_E_SYSTEM, "a round began that is not the next one of the pass");
    int rc = wic_acquire(e->link[WHOLE_STEPS], WIC_FOREVER, &step);
    if (rc < 0)
        return rc;
    /* The owner of the slot can change its numbers at any time: they are copied once. */
    memcpy(step.data, slot->data, e->map.plan->layout.format.head_bytes);
    *(struct whole_step *)step.user = (struct whole_step){WHOLE_ROUND, note.round};
    e->feed.sent_round = note.round;
    rc = wic_publish(e->link[WHOLE_STEPS], &step, e->map.plan->layout.format.head_bytes);
    return rc ? rc : whole_hand_back(e, slot, whole_event(e, EVENT_SLOT, slot->index));
}

void whole_rounds_begin(struct pb_exec_whole *e)
{
    const struct pb_slot_head *head = e->stream->head;
    if (e->dispatch.head != NULL && head != NULL)
        memcpy(e->dispatch.head, head, e->map.plan->layout.format.head_bytes);
    e->dispatch.round_is_over = false;
}
