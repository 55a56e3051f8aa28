/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_H
#define WIC_H
/* wic: producer/consumer channels whose waiting side is parked, not polling.
 *
 * A channel is a bounded ring of equal slots between one producer stage and one consumer stage
 * (each may have several threads). The n-th slot handed to a producer carries ticket n; consumers
 * get tickets in order. A consumer that asks for a ticket that is not there yet is parked (on the
 * host: on a futex, after a short adaptive spin) and woken by the publication of exactly that
 * ticket; a producer that meets a full ring is parked until the slot is released. Nothing is
 * allocated after init.
 *
 * The channel and its slots live in memory the caller gives, addressed by offsets only, so it may
 * be shared memory and the two sides may be two processes (options.shared).
 *
 * All functions return 0 or a negative errno; outputs are written only on success.
 *   -ETIMEDOUT  the time limit passed         -EPIPE   closed, and every published ticket is
 * consumed -ECANCELED  the channel was aborted       -EINVAL  an argument or a ticket out of turn
 * Stands alone: knows no pixels, files or jobs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_FOREVER    INT64_C(-1)
#define WIC_USER_BYTES 128 /* of the caller's own, beside each slot's payload */
#define WIC_SLOTS_MAX  4096

struct wic_channel;

struct wic_options {
    uint32_t slots;    /* 1 .. WIC_SLOTS_MAX */
    size_t slot_bytes; /* payload of a slot; slots are placed 4096-byte aligned relative to
                          `payload` */
    void *
        payload;         /* NULL: inside the channel's memory; else slots * wic_slot_stride() bytes,
                          * borrowed         for the channel's life (pinned or managed memory; not with `shared`) */
    bool shared;         /* the channel's memory is mapped by several processes */
    uint32_t spin_limit; /* upper bound of the adaptive spin before parking; 0 = default */
};

/* A slot in somebody's hands. Between acquire and publish it belongs to the producer, between wait
 * and release to the consumer; nobody else may touch it. */
struct wic_slot {
    uint64_t ticket;
    void *data;     /* slot_bytes */
    void *user;     /* WIC_USER_BYTES, travels with the slot */
    size_t bytes;   /* filled by the producer's publish; capacity on acquire */
    uint32_t index; /* which slot of the ring */
};

struct wic_stats {
    uint64_t published, consumed;
    uint64_t producer_parks, consumer_parks;         /* how often a side went to sleep */
    uint64_t producer_parked_ns, consumer_parked_ns; /* how long, summed over its threads */
    uint32_t high_water;                             /* most slots that were full at one time */
    uint32_t slots;
};

/* Bytes between two slots for a payload of slot_bytes. */
size_t wic_slot_stride(size_t slot_bytes);
/* Memory that wic_channel_init needs; 0 when the options are invalid. */
size_t wic_channel_bytes(const struct wic_options *options);
/* Makes a channel in `memory` (borrowed, 64-byte aligned, wic_channel_bytes long). Thread: init. */
int wic_channel_init(void *memory, const struct wic_options *options,
                     struct wic_channel **out_channel);
/* Second process: finds the channel that another one initialised in this shared memory; checks its
 * mark and version. */
int wic_channel_attach(void *memory, size_t bytes, struct wic_channel **out_channel);
/* Ends the use; every thread must have left. NULL is fine. */
void wic_channel_fini(struct wic_channel *channel);

/* Producer: takes the next ticket and its free slot; parks while the ring is full. A ticket that
 * was taken must be published (or the channel aborted). timeout_ns: WIC_FOREVER or >= 0. Thread:
 * any. */
int wic_acquire(struct wic_channel *channel, int64_t timeout_ns, struct wic_slot *out_slot);
/* Producer: hands the slot over with `bytes` of payload and wakes the consumer parked on this
 * ticket. */
int wic_publish(struct wic_channel *channel, const struct wic_slot *slot, size_t bytes);
/* Consumer: takes the next ticket; parks until it is published. Thread: any. */
int wic_wait(struct wic_channel *channel, int64_t timeout_ns, struct wic_slot *out_slot);
/* Consumer: gives the slot back and wakes the producer parked on it. */
int wic_release(struct wic_channel *channel, const struct wic_slot *slot);

/* No more tickets will be acquired: consumers drain what is published, then get -EPIPE. Call after
 * the last publish of every producer. Idempotent. Thread: any. */
void wic_close(struct wic_channel *channel);
/* Wakes everybody on both sides, who get -ECANCELED from now on. Idempotent. Thread: any,
 * signal-safe. */
void wic_abort(struct wic_channel *channel);

/* A snapshot; counters are exact when both sides are at rest. Thread: any. */
void wic_stats_get(const struct wic_channel *channel, struct wic_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
