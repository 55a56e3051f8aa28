/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The calls of a channel's two sides: slots are handed out for tickets (take.c) and given back.
 *
 * Payload. sequence = 2t + 1 in wic_publish is a release that pairs with the acquire of `sequence`
 * in ready_ticket() (take.c) on the consumer side; sequence = 2 (t + slots) in wic_release pairs in
 * the same way with the producer side. */
#include "wic/take.h"
#include "wic/spin.h"

#include <errno.h>

static void fill_slot(struct wic_channel *channel, uint64_t ticket, struct wic_slot *out_slot)
{
    uint32_t index = (uint32_t)(ticket % channel->slots);
    unsigned char *own = (unsigned char *)channel + channel->payload_offset;
    unsigned char *payload = channel->payload != NULL ? channel->payload : own;
    *out_slot = (struct wic_slot){
        .ticket = ticket,
        .data = payload + index * channel->stride,
        .user = channel->slot[index].user,
        .bytes = (size_t)channel->slot_bytes,
        .index = index,
    };
}

/* Whether this slot is taken and not given back yet. Its holder wrote or saw all that is read here,
 * so relaxed loads are enough; for other callers the result is an error in any case. */
static bool is_held(struct wic_channel *channel, enum wic_role role, const struct wic_slot *slot)
{
    uint64_t next = atomic_load_explicit(&channel->side[role].next, memory_order_relaxed);
    struct wic_slot_head *head = wic_slot_of(channel, slot->ticket);
    uint64_t sequence = atomic_load_explicit(&head->sequence, memory_order_relaxed);
    return slot->index == slot->ticket % channel->slots && slot->ticket < (next & ~WIC_CLOSED) &&
           sequence == 2 * slot->ticket + role;
}

/* Whether all these are, each once. Their cache lines, which are about to be written, are fetched
 * side by side and not one after the other. */
static int check_held(struct wic_channel *channel, enum wic_role role, const struct wic_slot *slots,
                      uint32_t n)
{
    if (channel == NULL || slots == NULL) {
        return -EINVAL;
    }
    if (wic_is_aborted(channel)) {
        return -ECANCELED;
    }
    for (uint32_t i = 0; i < n && n > 1; i++) {
        wic_cpu_fetch_to_write(wic_slot_of(channel, slots[i].ticket));
    }
    for (uint32_t i = 0; i < n; i++) {
        if ((i > 0 && slots[i].ticket <= slots[i - 1].ticket) ||
            !is_held(channel, role, &slots[i])) {
            return -EINVAL;
        }
    }
    return 0;
}

/* Counts n publications and updates the high-water mark of full slots. Both counts are made while
 * the slots are held; acquire and release here make every release visible that the counted
 * publications depended on, thus full <= slots. The consumers' count, on a cache line of theirs, is
 * read only if the value read last leaves room for a new maximum. */
static void count_published(struct wic_channel *channel, uint32_t n)
{
    struct wic_side *producer = &channel->side[WIC_PRODUCER];
    uint64_t published = n + atomic_fetch_add_explicit(&producer->done, n, memory_order_acq_rel);
    uint32_t high = atomic_load_explicit(&producer->high_water, memory_order_relaxed);
    uint64_t seen = atomic_load_explicit(&producer->seen_released, memory_order_relaxed);
    if ((int64_t)(published - seen) <= high) {
        return;
    }
    struct wic_side *consumer = &channel->side[WIC_CONSUMER];
    uint64_t released = atomic_load_explicit(&consumer->done, memory_order_relaxed);
    atomic_store_explicit(&producer->seen_released, released, memory_order_relaxed);
    int64_t full =
        (int64_t)(published - released); /* < 0: other producers were counted meanwhile */
    while (full > high &&
           !atomic_compare_exchange_weak_explicit(&producer->high_water, &high, (uint32_t)full,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

int wic_acquire_some(struct wic_channel *channel, int64_t timeout_ns, uint32_t most,
                     struct wic_slot *out_slots)
{
    if (channel == NULL || out_slots == NULL || timeout_ns < WIC_FOREVER || most == 0) {
        return -EINVAL;
    }
    struct wic_run run;
    int rc = wic_take(channel, WIC_PRODUCER, timeout_ns, most, &run);
    if (rc != 0) {
        return rc;
    }
    for (uint32_t i = 0; i < run.tickets; i++) {
        fill_slot(channel, run.first + i, &out_slots[i]);
    }
    return (int)run.tickets;
}

int wic_acquire(struct wic_channel *channel, int64_t timeout_ns, struct wic_slot *out_slot)
{
    int rc = wic_acquire_some(channel, timeout_ns, 1, out_slot);
    return rc > 0 ? 0 : rc;
}

int wic_publish_all(struct wic_channel *channel, const struct wic_slot *slots, uint32_t n)
{
    int rc = check_held(channel, WIC_PRODUCER, slots, n);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        rc = slots[i].bytes <= channel->slot_bytes ? 0 : -EINVAL;
    }
    if (rc != 0 || n == 0) {
        return rc;
    }
    count_published(channel, n);
    for (uint32_t i = 0; i < n; i++) {
        struct wic_slot_head *head = wic_slot_of(channel, slots[i].ticket);
        head->bytes = slots[i].bytes;
        WIC_STALL();
        /* Publishes the payload: pairs with the load in ready_ticket. */
        atomic_store(&head->sequence, 2 * slots[i].ticket + 1);
    }
    wic_wake_next(channel, WIC_CONSUMER);
    return 0;
}

int wic_publish(struct wic_channel *channel, const struct wic_slot *slot, size_t bytes)
{
    if (slot == NULL) {
        return -EINVAL;
    }
    struct wic_slot filled = *slot;
    filled.bytes = bytes;
    return wic_publish_all(channel, &filled, 1);
}

int wic_wait_some(struct wic_channel *channel, int64_t timeout_ns, uint32_t most,
                  struct wic_slot *out_slots)
{
    if (channel == NULL || out_slots == NULL || timeout_ns < WIC_FOREVER || most == 0) {
        return -EINVAL;
    }
    struct wic_run run;
    int rc = wic_take(channel, WIC_CONSUMER, timeout_ns, most, &run);
    if (rc != 0) {
        return rc;
    }
    for (uint32_t i = 0; i < run.tickets; i++) {
        fill_slot(channel, run.first + i, &out_slots[i]);
        out_slots[i].bytes = (size_t)wic_slot_of(channel, run.first + i)->bytes;
        if (channel->check != NULL && (rc = channel->check(channel->context, &out_slots[i])) != 0) {
            wic_abort(channel);
            return rc;
        }
    }
    return (int)run.tickets;
}

int wic_wait(struct wic_channel *channel, int64_t timeout_ns, struct wic_slot *out_slot)
{
    int rc = wic_wait_some(channel, timeout_ns, 1, out_slot);
    return rc > 0 ? 0 : rc;
}

int wic_release_all(struct wic_channel *channel, const struct wic_slot *slots, uint32_t n)
{
    int rc = check_held(channel, WIC_CONSUMER, slots, n);
    if (rc != 0 || n == 0) {
        return rc;
    }
    /* Release: wic_stats_get, when it counts these releases, also counts their publications. */
    atomic_fetch_add_explicit(&channel->side[WIC_CONSUMER].done, n, memory_order_release);
    for (uint32_t i = 0; i < n; i++) {
        WIC_STALL();
        /* Returns the memory: pairs with the load in ready_ticket. */
        atomic_store(&wic_slot_of(channel, slots[i].ticket)->sequence,
                     2 * (slots[i].ticket + channel->slots));
    }
    wic_wake_next(channel, WIC_PRODUCER);
    return 0;
}

int wic_release(struct wic_channel *channel, const struct wic_slot *slot)
{
    return wic_release_all(channel, slot, 1);
}

static void wake_everybody(struct wic_channel *channel)
{
    for (enum wic_role role = WIC_PRODUCER; role <= WIC_CONSUMER; role++) {
        /* As in wic_wake_next; another process may have made the count 0. */
        if (channel->joined || atomic_load(&channel->side[role].waiters) != 0) {
            wic_wake_all(channel, role);
        }
    }
}

void wic_close(struct wic_channel *channel)
{
    /* The flag is in the word that producers compare-exchange, so that no ticket is taken after
     * it. */
    atomic_fetch_or(&channel->side[WIC_PRODUCER].next, WIC_CLOSED);
    wake_everybody(channel);
}

void wic_abort(struct wic_channel *channel)
{
    if (channel->joined) {
        atomic_store(&channel->left, 1);
    }
    atomic_store(&channel->aborted, 1);
    wake_everybody(channel);
}
