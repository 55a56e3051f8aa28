/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_CHANNEL_H
#define WIC_CHANNEL_H
/* The inside of a channel, for wic/ and its tests only: the layout of the (possibly shared) memory.
 *
 *   struct wic_channel | slots x struct wic_slot_head | padding to 4096 | slots x payload
 *
 * Everything is found by its offset from the channel, as each process maps it at another address.
 * Members are grouped into cache lines of 64 bytes by which side writes them and how often, so that
 * a streaming channel moves few lines between cores. */
#include "wic/wic.h"

#include <stdatomic.h>

#define WIC_LINE    64
#define WIC_PAGE    4096
#define WIC_MAGIC   UINT64_C(0x316c6e6863636977) /* "wicchnl1", little endian */
#define WIC_VERSION 3u
#define WIC_CLOSED  (UINT64_C(1) << 63) /* beside the producers' next ticket */
/* A ticket is doubled in wic_slot_head.sequence; at 10^9 tickets a second this lasts for 70
 * years. */
#define WIC_TICKET_MAX (UINT64_C(1) << 61)

/* Locks would be neither signal-safe nor good between processes. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "atomics must be lock-free");

enum wic_role { WIC_PRODUCER = 0, WIC_CONSUMER = 1 };

/* One side of the channel. */
struct wic_side {
    /* Written by this side at every hand-over. */
    _Alignas(WIC_LINE) _Atomic uint64_t next; /* ticket to be taken next; producer: | WIC_CLOSED */
    _Atomic uint64_t done;                    /* producer: published; consumer: released */
    _Atomic uint64_t seen_released;           /* producer only: an older consumer.done */
    _Atomic uint32_t high_water;              /* producer only */
    _Atomic uint32_t spin; /* rounds for which a waiting thread polls before it parks; adaptive */
    /* Written only when a thread parks or is woken; the other side reads it at every hand-over. */
    _Alignas(WIC_LINE) _Atomic uint32_t
        futex; /* the word that waiters sleep on; odd: a woken thread has yet to check */
    _Atomic uint32_t waiters; /* threads asleep or about to be */
    _Atomic uint64_t parks;
    _Atomic uint64_t parked_ns;
};

/* The state of a slot, as in Vyukov's bounded queue: `sequence` is 2 * t while the slot is free for
 * ticket t (or being filled by its holder), 2 * t + 1 from the publication of t until its release,
 * then 2 * (t + slots). Never goes back, never wraps. */
struct wic_slot_head {
    _Alignas(WIC_LINE) _Atomic uint64_t sequence;
    uint64_t bytes; /* of payload; belongs to the holder of the slot, as `user` does */
    _Alignas(WIC_LINE) unsigned char user[WIC_USER_BYTES];
};

struct wic_channel {
    /* The head. Where the other side is not trusted it is this process' own (wic_channel_join): the
     * shared part begins with `aborted`. */
    _Atomic uint64_t magic; /* WIC_MAGIC once initialised */
    uint32_t version;
    uint32_t slots;
    uint64_t total_bytes;
    uint64_t slot_bytes;
    uint64_t stride;
    uint64_t payload_offset; /* from the channel; 0: `payload` */
    unsigned char *payload;  /* the caller's, means nothing in another process */
    uint32_t spin_limit;     /* in naps if nap_ns is not 0 */
    uint32_t nap_ns;
    bool shared, joined;
    _Atomic uint32_t left; /* joined: this process aborted it, whatever `aborted` says */
    int (*check)(void *context, struct wic_slot *slot); /* joined: of struct wic_join */
    void *context;
    /* --- the shared part --- */
    _Alignas(WIC_LINE) _Atomic uint32_t aborted;
    struct wic_side side[2]; /* by enum wic_role */
    struct wic_slot_head slot[];
};

_Static_assert(offsetof(struct wic_channel, aborted) == WIC_HEAD_BYTES, "see wic.h");

/* wic_channel_init with other first values of the counters than 0, to test their wrap. */
int wic_channel_init_at(void *memory, const struct wic_options *options, uint64_t first_ticket,
                        uint32_t first_futex, struct wic_channel **out_channel);

#endif
