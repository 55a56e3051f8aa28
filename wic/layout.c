/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Init, attach and fini of a channel, its sizes and statistics. The state machine is in
 * take.c and channel.c. */
#include "wic/channel.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* Largest number of rounds of the adaptive spin: about 10 us with three cores and more, where the
 * other side makes progress meanwhile and a sleep costs more; little with two; none with one. */
#define SPIN_MANY_CORES 512u
#define SPIN_TWO_CORES  64u

struct layout {
    uint64_t stride;
    uint64_t payload_offset; /* 0: the payload is the caller's */
    uint64_t total_bytes;
};

/* False when the options make no channel. */
static bool layout_make_any(struct layout *out, const struct wic_options *options)
{
    if (options == NULL || options->slots < 1 || options->slots > WIC_SLOTS_MAX ||
        options->nap_ns > WIC_NAP_NS_MOST ||
        options->slot_bytes > SIZE_MAX / 2 / options->slots - 2 * WIC_PAGE) {
        return false;
    }
    uint64_t heads =
        sizeof(struct wic_channel) + (uint64_t)options->slots * sizeof(struct wic_slot_head);
    out->stride = wic_slot_stride(options->slot_bytes);
    if (options->payload != NULL) {
        out->payload_offset = 0;
        out->total_bytes = heads;
    } else {
        out->payload_offset = (heads + WIC_PAGE - 1) / WIC_PAGE * WIC_PAGE;
        out->total_bytes = out->payload_offset + options->slots * out->stride;
    }
    return true;
}

/* The same where head and slots lie beside each other: a payload of the caller's would mean nothing
 * to other processes. */
static bool layout_make(struct layout *out, const struct wic_options *options)
{
    return layout_make_any(out, options) && !(options->shared && options->payload != NULL);
}

size_t wic_slot_stride(size_t slot_bytes)
{
    if (slot_bytes > SIZE_MAX - (WIC_PAGE - 1)) {
        return 0;
    }
    return (slot_bytes + WIC_PAGE - 1) / WIC_PAGE * WIC_PAGE;
}

size_t wic_channel_bytes(const struct wic_options *options)
{
    struct layout layout;
    return layout_make(&layout, options) ? (size_t)layout.total_bytes : 0;
}

static uint32_t spin_limit(uint32_t wanted)
{
    cpu_set_t cpus;
    int cores = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 2;
    if (cores < 2) {
        return 0; /* the other side cannot run while this thread spins */
    }
    if (wanted > 0) {
        return wanted;
    }
    return cores > 2 ? SPIN_MANY_CORES : SPIN_TWO_CORES;
}

static void set_head(struct wic_channel *channel, const struct wic_options *options,
                     const struct layout *layout)
{
    channel->version = WIC_VERSION;
    channel->slots = options->slots;
    channel->total_bytes = layout->total_bytes;
    channel->slot_bytes = options->slot_bytes;
    channel->stride = layout->stride;
    channel->payload_offset = layout->payload_offset;
    channel->payload = options->payload;
    channel->shared = options->shared;
    channel->spin_limit = options->nap_ns ? WIC_NAPS : spin_limit(options->spin_limit);
    channel->nap_ns = options->nap_ns;
}

static void set_words(struct wic_channel *channel, uint64_t first_ticket, uint32_t first_futex)
{
    for (int role = WIC_PRODUCER; role <= WIC_CONSUMER; role++) {
        atomic_init(&channel->side[role].next, first_ticket);
        atomic_init(&channel->side[role].futex, first_futex);
        atomic_init(&channel->side[role].spin,
                    channel->nap_ns ? channel->spin_limit : channel->spin_limit / 4);
    }
    for (uint64_t ticket = first_ticket; ticket < first_ticket + channel->slots; ticket++) {
        atomic_init(&channel->slot[ticket % channel->slots].sequence, 2 * ticket);
    }
}

int wic_channel_init_at(void *memory, const struct wic_options *options, uint64_t first_ticket,
                        uint32_t first_futex, struct wic_channel **out_channel)
{
    struct layout layout;
    if (memory == NULL || (uintptr_t)memory % WIC_LINE != 0 || out_channel == NULL ||
        first_ticket > WIC_TICKET_MAX || !layout_make(&layout, options)) {
        return -EINVAL;
    }
    struct wic_channel *channel = memory;
    memset(channel, 0, sizeof(*channel) + options->slots * sizeof(struct wic_slot_head));
    set_head(channel, options, &layout);
    set_words(channel, first_ticket, first_futex);
    /* Pairs with the load in wic_channel_attach: a thread that sees the magic sees all of the
     * above. */
    atomic_store_explicit(&channel->magic, WIC_MAGIC, memory_order_release);
    *out_channel = channel;
    return 0;
}

int wic_channel_init(void *memory, const struct wic_options *options,
                     struct wic_channel **out_channel)
{
    return wic_channel_init_at(memory, options, 0, 0, out_channel);
}

int wic_channel_attach(void *memory, size_t bytes, struct wic_channel **out_channel)
{
    struct wic_channel *channel = memory;
    if (memory == NULL || (uintptr_t)memory % WIC_LINE != 0 || bytes < sizeof(*channel) ||
        out_channel == NULL) {
        return -EINVAL;
    }
    /* Pairs with the store in wic_channel_init_at. */
    if (atomic_load_explicit(&channel->magic, memory_order_acquire) != WIC_MAGIC) {
        return -EINVAL;
    }
    if (channel->version != WIC_VERSION) {
        return -EPROTO;
    }
    /* The header must be one that init makes, and all of it must be mapped here. */
    struct wic_options options = {
        .slots = channel->slots, .slot_bytes = (size_t)channel->slot_bytes, .shared = true};
    struct layout layout;
    if (!channel->shared || channel->payload != NULL || !layout_make(&layout, &options) ||
        layout.stride != channel->stride || layout.payload_offset != channel->payload_offset ||
        layout.total_bytes != channel->total_bytes || layout.total_bytes > bytes) {
        return -EINVAL;
    }
    *out_channel = channel;
    return 0;
}

size_t wic_join_bytes(const struct wic_options *options)
{
    struct layout layout;
    if (!layout_make_any(&layout, options)) {
        return 0;
    }
    return sizeof(struct wic_channel) + options->slots * sizeof(struct wic_slot_head) -
           WIC_HEAD_BYTES;
}

int wic_channel_join(void *shared, const struct wic_join *join, struct wic_channel **out_channel)
{
    struct layout layout;
    if (shared == NULL || (uintptr_t)shared % WIC_LINE != 0 || join == NULL ||
        out_channel == NULL || !join->options.shared || join->options.payload == NULL ||
        !layout_make_any(&layout, &join->options)) {
        return -EINVAL;
    }
    struct wic_channel *channel = (void *)((unsigned char *)shared - WIC_HEAD_BYTES);
    memset(channel, 0, WIC_HEAD_BYTES);
    set_head(channel, &join->options, &layout);
    channel->joined = true;
    channel->check = join->check;
    channel->context = join->context;
    if (join->first) {
        memset(shared, 0, wic_join_bytes(&join->options));
        set_words(channel, 0, 0);
    }
    atomic_store_explicit(&channel->magic, WIC_MAGIC, memory_order_release);
    *out_channel = channel;
    return 0;
}

void wic_channel_fini(struct wic_channel *channel)
{
    if (channel != NULL) {
        atomic_store_explicit(&channel->magic, 0, memory_order_release);
    }
}

void wic_stats_get(const struct wic_channel *channel, struct wic_stats *out_stats)
{
    const struct wic_side *producer = &channel->side[WIC_PRODUCER];
    const struct wic_side *consumer = &channel->side[WIC_CONSUMER];
    /* Consumed before published, so that a snapshot never shows more consumed than published:
     * acquire pairs with the count in wic_release, which comes after the publication's. */
    uint64_t consumed = atomic_load_explicit(&consumer->done, memory_order_acquire);
    *out_stats = (struct wic_stats){
        .consumed = consumed,
        .published = atomic_load_explicit(&producer->done, memory_order_relaxed),
        .producer_parks = atomic_load_explicit(&producer->parks, memory_order_relaxed),
        .consumer_parks = atomic_load_explicit(&consumer->parks, memory_order_relaxed),
        .producer_parked_ns = atomic_load_explicit(&producer->parked_ns, memory_order_relaxed),
        .consumer_parked_ns = atomic_load_explicit(&consumer->parked_ns, memory_order_relaxed),
        .high_water = atomic_load_explicit(&producer->high_water, memory_order_relaxed),
        .slots = channel->slots,
    };
}
