/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The tiles of the device proxy: from a ticket of `in` and one of `out` to the link, and back to
 * both channels. Tickets are taken and handed over several with one call, because the cache lines
 * of their slots come from other cores: side by side they take as long as one. */
#include "wic/device/proxy_inside.h"
#include "wic/device/stay.h"

#include <errno.h>
#include <string.h>

#define BATCH 16u /* tickets that are taken or handed over with one call, at most */

/* How many of the tiles from `tile` to `end` lie side by side in the arrays, up to BATCH. */
static uint32_t side_by_side(const struct wic_device *device, uint64_t tile, uint64_t end)
{
    uint64_t before_wrap = device->window - tile % device->window;
    uint64_t n = end - tile < before_wrap ? end - tile : before_wrap;
    return n < BATCH ? (uint32_t)n : BATCH;
}

/* How many tiles in a row are done, of those that can be handed over together. */
static uint32_t count_done(struct wic_device *device)
{
    uint32_t most = side_by_side(device, device->finished, device->posted), n = 0;
    while (n < most && wic_link_done(device->link, device->finished + n - device->base)) {
        n++;
    }
    return n;
}

int wic_proxy_finish(struct wic_device *device)
{
    int sum = 0;
    for (uint32_t n; (n = count_done(device)) > 0; sum += (int)n) {
        uint64_t at = device->finished % device->window;
        for (uint64_t i = at; i < at + n; i++) {
            device->out[i].bytes = device->what[i].out_bytes;
            device->stats.out_bytes += device->what[i].out_bytes;
        }
        int rc = wic_publish_all(device->options.out, &device->out[at], n);
        if (rc == 0) {
            device->finished += n; /* an abort after this does not take them back */
            rc = wic_release_all(device->options.in, &device->in[at], n);
        }
        if (rc != 0) {
            return rc;
        }
        device->timeouts = 0;
    }
    return sum;
}

int wic_proxy_post(struct wic_device *device, uint64_t tile)
{
    const struct wic_slot *in = &device->in[tile % device->window];
    const struct wic_device_tile *what = &device->what[tile % device->window];
    struct wic_link_tile posted = {.number = tile - device->base,
                                   .units = what->units,
                                   .bytes = in->bytes,
                                   .out_bytes = what->out_bytes,
                                   .user = in->user,
                                   .unit_bytes = what->unit_bytes};
    if (device->options.plan.in_piece == 0) {
        device->stats.in_bytes += in->bytes; /* pulled bytes are counted by those who pull */
    }
    return wic_link_post(device->link, &posted);
}

static int describe(const struct wic_device *device, const struct wic_slot *in,
                    const struct wic_slot *out, struct wic_device_tile *what)
{
    const struct wic_device_options *o = &device->options;
    memcpy(out->user, in->user, WIC_USER_BYTES);
    if (o->describe != NULL) {
        return o->describe(o->context, in, out, what);
    }
    size_t units = in->bytes / o->plan.in_unit;
    *what = (struct wic_device_tile){(uint32_t)units, units * o->plan.out_unit, 0};
    if (in->bytes % o->plan.in_unit != 0 || units > UINT32_MAX) {
        return wic_stay_refuse(-EINVAL, "ticket %llu has %zu bytes, which is not whole units of %u",
                               (unsigned long long)in->ticket, in->bytes, o->plan.in_unit);
    }
    return 0;
}

/* The kernel checks nothing: units beyond the plan's pieces would be lost without an error, and
 * results that do not fit would overwrite the next slot. */
static bool is_within_slots(const struct wic_device *device, const struct wic_device_tile *what)
{
    const struct wic_transfer_plan *plan = &device->options.plan;
    uint32_t unit = what->unit_bytes ? what->unit_bytes : plan->in_unit;
    return unit <= plan->in_unit && what->units <= (uint64_t)plan->pieces * plan->piece_units &&
           (uint64_t)what->units * unit <= device->options.in->stride &&
           (uint64_t)what->units * plan->out_unit <= device->options.out->slot_bytes &&
           what->out_bytes <= device->options.out->slot_bytes;
}

/* Takes input tickets if none is left over. 0, also when there are none, or an error. */
static int take_inputs(struct wic_device *device, int64_t patience)
{
    uint64_t room = device->finished + device->window;
    if (device->taken > device->paired || device->taken == room || device->ended) {
        return 0;
    }
    int n = wic_wait_some(device->options.in, patience, side_by_side(device, device->taken, room),
                          &device->in[device->taken % device->window]);
    device->ended = n == -EPIPE;
    if (n <= 0) {
        return n == -ETIMEDOUT || n == -EPIPE ? 0 : n;
    }
    device->taken += (uint64_t)n;
    return 0;
}

/* Whether the tile may be posted: 0 or an error. */
static int check(struct wic_device *device, uint64_t tile)
{
    const struct wic_slot *in = &device->in[tile % device->window];
    const struct wic_slot *out = &device->out[tile % device->window];
    struct wic_device_tile *what = &device->what[tile % device->window];
    if (in->ticket != device->in_first + tile || out->ticket != device->out_first + tile) {
        return wic_stay_refuse(-EINVAL,
                               "another thread took a ticket of a channel that a GPU serves");
    }
    int rc = describe(device, in, out, what);
    if (rc == 0 && !is_within_slots(device, what)) {
        rc = wic_stay_refuse(-EINVAL,
                             "ticket %llu has %u units with %zu bytes of results, which is more "
                             "than a tile of the plan or a slot holds",
                             (unsigned long long)in->ticket, what->units, what->out_bytes);
    }
    return rc;
}

int wic_proxy_take(struct wic_device *device, int64_t patience)
{
    int rc = device->failure != 0 ? device->failure : take_inputs(device, patience);
    if (rc != 0 || device->taken == device->paired) {
        return rc;
    }
    int n = wic_acquire_some(device->options.out, patience,
                             side_by_side(device, device->paired, device->taken),
                             &device->out[device->paired % device->window]);
    if (n <= 0) {
        return n == -ETIMEDOUT ? 0 : n;
    }
    uint64_t first = device->paired;
    for (; device->paired < first + (uint64_t)n && rc == 0; device->paired += rc == 0) {
        rc = check(device, device->paired);
    }
    device->failure = rc; /* once those before have been posted */
    return device->paired > first ? (int)(device->paired - first) : rc;
}

int wic_proxy_post_taken(struct wic_device *device)
{
    int rc = 0;
    for (; device->posted < device->paired && rc == 0; device->posted++) {
        rc = wic_proxy_post(device, device->posted);
    }
    return rc;
}
