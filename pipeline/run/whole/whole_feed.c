/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Feeder and releaser. Loads arrive in the order of their pieces, whichever side decodes them. A
 * band uses the memory of the band before the last, whose tiles must be done; a lot of blocks whose
 * planes are managed, that of the lot before the last, whose groups must be checked. */
#include "pipeline/run/whole/whole_inside.h"

#include "config/base/clock.h"

#include <errno.h>
#include <string.h>

static int tell(struct pb_exec_whole *e, enum whole_step_kind kind, uint32_t number)
{
    struct wic_slot slot;
    int rc = wic_acquire(e->link[WHOLE_STEPS], WIC_FOREVER, &slot);
    if (rc < 0)
        return rc;
    *(struct whole_step *)slot.user = (struct whole_step){kind, number};
    return wic_publish(e->link[WHOLE_STEPS], &slot, 0);
}

/* Begins the next lot, and its band. All groups of the one before are queued. */
static int enter_lot(struct pb_exec_whole *e)
{
    const bool managed = e->map.plan->engine.whole.managed;
    struct wic_channel *link = e->link[managed ? WHOLE_LOTS : WHOLE_THROUGH];
    uint32_t lot = e->feed.entered++;
    struct wic_slot slot;
    int rc = 0;
    if (lot >= 2) {
        uint64_t since = pb_clock_mono_ns();
        rc = wic_wait(link, WIC_FOREVER, &slot);
        whole_waited(e, PB_DEVICE_WAIT_FEED_BAND, since);
        rc = rc ? rc : wic_release(link, &slot);
    }
    return rc || (managed && lot > 0) ? rc : tell(e, WHOLE_BAND, lot);
}

static bool is_sent(const struct pb_exec_whole *e, uint32_t number)
{
    const struct pb_whole_group *group = &e->map.group[number];
    return group->stored_end == group->first || group->stored_end <= e->feed.sent_pieces;
}

int whole_hand_back(struct pb_exec_whole *e, const struct wic_slot *slot, uint32_t event)
{
    struct wic_slot copy = {.user = NULL};
    int rc = wic_acquire(e->link[WHOLE_COPIES], WIC_FOREVER, &copy);
    if (rc != 0)
        return rc;
    *(struct whole_sent *)copy.user = (struct whole_sent){*slot, event};
    return wic_publish(e->link[WHOLE_COPIES], &copy, 0);
}

/* Returns slots that were read in place, of a group whose decoding is queued. */
static int hand_back_held(struct pb_exec_whole *e, uint32_t group)
{
    int rc = 0;
    for (uint32_t i = 0; i < e->feed.n_held && rc == 0; i++)
        rc = whole_hand_back(e, &e->feed.held[i], whole_event(e, EVENT_DECODED, group));
    e->feed.n_held = 0;
    return rc;
}

/* Queues the groups that are completely sent, and begins their lots. */
static int queue_groups(struct pb_exec_whole *e, struct pb_err *err)
{
    int rc = 0;
    while (rc == 0 && e->feed.queued_groups < e->map.n_groups &&
           is_sent(e, e->feed.queued_groups)) {
        uint32_t group = e->feed.queued_groups;
        while (rc == 0 && e->feed.entered <= e->map.group[group].lot)
            rc = enter_lot(e);
        rc = rc ? rc : whole_tables_decode(e, group, err);
        rc = rc ? rc : hand_back_held(e, group);
        e->feed.queued_groups++;
        rc = rc ? rc : tell(e, WHOLE_GROUP, group);
    }
    return rc;
}

/* Address of the load's first piece. */
static unsigned char *place_of(const struct pb_exec_whole *e, const struct pb_whole_load *load)
{
    const struct pb_whole_piece *piece = &e->map.piece[load->first];
    const struct whole_room *room = &e->room[e->map.group[piece->group].lot % 2];
    return load->is_decoded ? whole_decoded(e, piece) : room->stored + piece->stored_at;
}

static int copy_load(struct pb_exec_whole *e, const struct wic_slot *slot,
                     const struct pb_whole_load *load, struct pb_err *err)
{
    uint64_t bytes = pb_whole_load_bytes(&e->map, load);
    uint32_t event = whole_event(e, EVENT_SLOT, slot->index);
    int rc = e->ops->copy(e->device, QUEUE_SEND, place_of(e, load), slot->data, (size_t)bytes, err);
    rc = rc ? rc : e->ops->mark(e->device, QUEUE_SEND, event, err);
    e->feed.in_bytes += bytes;
    return rc ? rc : whole_hand_back(e, slot, event);
}

/* Keeps the slot until its group is decoded; a group has at most half as many pieces as there are
 * slots. */
static int hold_load(struct pb_exec_whole *e, const struct wic_slot *slot,
                     const struct pb_whole_load *load, struct pb_err *err)
{
    void *at = NULL;
    int rc = e->ops->seen(e->device, slot->data, err, &at);
    if (rc < 0)
        return rc;
    whole_tables_in_place(e, load, at);
    e->feed.held[e->feed.n_held++] = *slot;
    return 0;
}

static int send_load(struct pb_exec_whole *e, const struct wic_slot *slot, struct pb_err *err)
{
    const struct pb_plan *plan = e->map.plan;
    struct pb_whole_load load;
    memcpy(&load, slot->user, sizeof load);
    if (load.first == WHOLE_ROUND_MARK)
        return whole_rounds_take(e, slot, err);
    if (!pb_whole_load_is_next(&e->map, e->feed.sent_pieces, &load, plan->layout.in_slot_bytes,
                               e->stream->answers))
        return pb_fail(err, PB_E_SYSTEM, "blocks arrived that are not the next ones of the scene");
    uint32_t lot = e->map.group[e->map.piece[load.first].group].lot;
    /* The pieces before it are sent, or left out: slots of their groups are handed back first. */
    e->feed.sent_pieces = load.first;
    int rc = queue_groups(e, err);
    while (rc == 0 && e->feed.entered <= lot)
        rc = enter_lot(e);
    e->tables.by_core[load.first] = load.is_decoded;
    rc = rc                            ? rc
         : plan->engine.whole.in_place ? hold_load(e, slot, &load, err)
                                       : copy_load(e, slot, &load, err);
    e->feed.sent_pieces = load.end;
    return rc;
}

/* Skips the last pieces if no tile needs them. */
static void skip_rest(struct pb_exec_whole *e)
{
    struct pb_whole_load more;
    if (pb_whole_map_load(&e->map, e->feed.sent_pieces, e->map.plan->layout.in_slot_bytes,
                          e->stream->answers, &more) == PB_WHOLE_END)
        e->feed.sent_pieces = e->map.n_pieces;
}

int whole_feed(struct pb_exec_whole *e, struct pb_err *err)
{
    struct pb_stream *s = e->stream;
    struct wic_slot slot;
    uint64_t since = pb_clock_mono_ns();
    int rc = queue_groups(e, err); /* groups without anything to send */
    while (rc == 0 && e->map.n_pieces == 0 && e->feed.entered < e->map.n_lots)
        rc = enter_lot(e); /* all pixels are on the device already */
    while (rc == 0 && (rc = wic_wait(s->in, WIC_FOREVER, &slot)) == 0) {
        uint64_t start = pb_clock_mono_ns();
        whole_waited(e, PB_DEVICE_WAIT_FEED_BLOCKS, since);
        rc = send_load(e, &slot, err);
        rc = rc ? rc : queue_groups(e, err);
        since = pb_clock_mono_ns();
        atomic_fetch_add(&s->compute.busy_ns, since - start);
    }
    whole_waited(e, PB_DEVICE_WAIT_FEED_BLOCKS, since);
    if (rc != -EPIPE)
        return rc;
    skip_rest(e);
    rc = queue_groups(e, err);
    while (rc == 0 && e->feed.entered < e->map.n_lots)
        rc = enter_lot(e);
    wic_close(e->link[WHOLE_COPIES]);
    wic_close(e->link[WHOLE_STEPS]);
    return rc;
}

int whole_release(struct pb_exec_whole *e, struct pb_err *err)
{
    struct wic_slot copy;
    struct whole_sent sent;
    int rc;
    uint64_t since = pb_clock_mono_ns();
    while ((rc = wic_wait(e->link[WHOLE_COPIES], WIC_FOREVER, &copy)) == 0) {
        whole_waited(e, PB_DEVICE_WAIT_RELEASE_CHUNK, since);
        memcpy(&sent, copy.user, sizeof sent);
        rc = whole_wait_event(e, sent.event, PB_DEVICE_WAIT_RELEASE_COPY, "copying blocks in", err);
        if (rc == 0)
            whole_note_progress(e, &sent.slot);
        rc = rc ? rc : wic_release(e->stream->in, &sent.slot);
        rc = rc ? rc : wic_release(e->link[WHOLE_COPIES], &copy);
        if (rc < 0)
            return rc;
        since = pb_clock_mono_ns();
    }
    whole_waited(e, PB_DEVICE_WAIT_RELEASE_CHUNK, since);
    return rc == -EPIPE ? 0 : rc;
}
