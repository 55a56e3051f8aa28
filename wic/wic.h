/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_H
#define WIC_H
/* wic: producer/consumer channels whose waiting side is parked, not polling.
 *
 * A channel is a bounded ring of equal slots between one producer stage and one consumer stage;
 * each may have several threads. A slot goes round:
 *
 *      wic_acquire         wic_publish          wic_wait           wic_release
 *   free ------> producer's ------> published ------> consumer's ------> free
 *
 * The n-th slot handed to a producer carries ticket n, counted from 0. Consumers take tickets in
 * order, each ticket once; which of several threads gets which one is not defined, and tickets
 * published out of order wait for the missing one. A consumer that asks for a ticket that is not
 * there yet is parked (after a short spin that adapts to how well spinning pays, and is none on a
 * single core) on a futex, and one is woken by the publication of exactly the ticket that is next;
 * a producer that meets a full ring is parked until the next slot in turn is released. That is the
 * back-pressure. A wait that gives up (time limit, close, abort) has taken nothing: no ticket is
 * lost.
 *
 *   struct wic_slot s;                                            a producer thread
 *   while (more() && wic_acquire(c, WIC_FOREVER, &s) == 0)
 *       wic_publish(c, &s, fill(s.data, s.bytes));
 *   wic_close(c);                                                 once, after the last of them
 *
 *   struct wic_slot s;                                            a consumer thread
 *   while ((rc = wic_wait(c, WIC_FOREVER, &s)) == 0) {
 *       use(s.data, s.bytes);
 *       wic_release(c, &s);
 *   }                                                             -EPIPE: that was all
 *
 * The end. wic_close is the orderly one: no ticket is acquired after it, consumers still get every
 * ticket acquired before it and then -EPIPE. wic_abort ends everything at once: each call from then
 * on returns -ECANCELED, slots that are held stay valid memory but cannot be handed over any more.
 *
 * Memory. Nothing is allocated after init. The channel and its slots live in memory the caller
 * gives. With options.shared it is found by offsets only, so it may be shared memory mapped at
 * different addresses by several processes, which trust each other; wic_channel_join is for those
 * that do not. A process that dies while it
 * holds a slot leaves a ticket that never comes: the other processes get -ETIMEDOUT, or the one
 * that sees it die calls wic_abort. One that dies while parked holds nothing.
 *
 * All that the holder of a slot wrote before it handed the slot over (payload, user bytes and any
 * other memory) is visible to the next holder.
 *
 * Costs, uncontended: a hand-over (all four calls) takes no system call and no lock while no thread
 * is parked; publish and release make one (a futex wake) when one is.
 *
 * All functions return 0 or a negative errno; outputs are written only on success.
 *   -ETIMEDOUT  the time limit passed         -EPIPE      closed, and every ticket is consumed
 *   -ECANCELED  the channel was aborted       -EINVAL     an argument or a ticket out of turn
 *   -EPROTO     a joined channel whose shared words make no sense
 * A kernel that refuses to wait (a seccomp filter, say) makes acquire and wait return its errno.
 * Stands alone: knows no pixels, files or jobs. How it works inside: take.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define WIC_FOREVER    INT64_C(-1)
#define WIC_USER_BYTES 128 /* of the caller's own, beside each slot's payload */
#define WIC_SLOTS_MAX  4096
#define WIC_HEAD_BYTES 128 /* before the shared part of a channel, see wic_channel_join */

struct wic_channel;

struct wic_options {
    uint32_t slots;    /* 1 .. WIC_SLOTS_MAX */
    size_t slot_bytes; /* payload of a slot, may be 0; slots lie wic_slot_stride() apart */
    void *payload; /* NULL: inside the channel's memory, at a multiple of 4096 from its start; else
                      slots * wic_slot_stride() bytes of the caller's (pinned or managed memory,
                      say), borrowed for the channel's life; not with `shared` */
    bool shared;   /* the channel's memory is mapped by several processes */
    uint32_t spin_limit; /* rounds of the adaptive spin before parking, at most; 0 = by number of
                            cores */
    uint32_t nap_ns; /* 0, or up to WIC_NAP_NS_MOST: a waiting thread sleeps this long between two
                        looks in place of the spin, up to WIC_NAPS times, then it parks. While
                        tickets are closer together than naps, one look takes many of them and no
                        system call wakes a thread: less CPU time, more latency */
};

#define WIC_NAP_NS_MOST 1000000u
#define WIC_NAPS        8u

/* A slot that is held. Between acquire and publish it belongs to the producer, between wait and
 * release to the consumer; other threads must not touch it. A plain value: it may be copied and
 * handed over by another thread than the one that took it. */
struct wic_slot {
    uint64_t ticket;
    void *data;   /* slot_bytes of payload; undefined content on acquire */
    void *user;   /* WIC_USER_BYTES, 64-byte aligned, travel with the slot; undefined on acquire */
    size_t bytes; /* acquire: slot_bytes; wait: what publish was told */
    uint32_t index; /* which slot of the ring: ticket % slots */
};

struct wic_stats {
    uint64_t published, consumed;            /* consumed = released */
    uint64_t producer_parks, consumer_parks; /* how often a side went to sleep */
    uint64_t producer_parked_ns,
        consumer_parked_ns; /* how long, summed over its threads; counted on waking */
    uint32_t high_water;    /* most slots that were full at one time, from publication to release */
    uint32_t slots;
};

/* Bytes between two slots for a payload of slot_bytes: the next multiple of 4096. */
size_t wic_slot_stride(size_t slot_bytes);

/* Memory that wic_channel_init needs; 0 when the options are invalid (NULL, slots or nap_ns out of
 * range, payload with shared, or too big for the address space). Thread: any. */
size_t wic_channel_bytes(const struct wic_options *options);

/* Makes a channel in `memory` (borrowed, 64-byte aligned, wic_channel_bytes long; its content is
 * overwritten). 0 or -EINVAL. Thread: init. */
int wic_channel_init(void *memory, const struct wic_options *options,
                     struct wic_channel **out_channel);

/* Another process: finds the channel that was initialised with `shared` at the start of this
 * memory, of which `bytes` are mapped here (64-byte aligned). -EINVAL: there is none (yet), it is
 * not a shared one, or it is longer than `bytes`; -EPROTO: its layout is of another version of this
 * library. Thread: any. */
int wic_channel_attach(void *memory, size_t bytes, struct wic_channel **out_channel);

/* A channel to a process that is not trusted: the parts that say where slots lie and how large they
 * are belong to each process alone, and only words that the two must exchange are shared. */
struct wic_join {
    struct wic_options options; /* with `shared`; payload: the slots as they are mapped here */
    bool first;                 /* this process initialises the shared part, before others join */
    /* Consumer, NULL = none: called by wic_wait for the slot that it is about to return. bytes and
     * what user points at are the other process' words, which may change at any time: the callback
     * reads what it needs of them once, and sets bytes and user to values and memory of its own.
     * Non-zero: wic_wait aborts the channel and returns it. Thread: that of wic_wait. */
    int (*check)(void *context, struct wic_slot *slot);
    void *context;
};

/* Bytes of the shared part without the slots; 0: the options are invalid. */
size_t wic_join_bytes(const struct wic_options *options);

/* Makes this process' view of the channel. shared: wic_join_bytes mapped memory, 64-byte aligned;
 * the WIC_HEAD_BYTES before it are memory of this process alone, and both are borrowed. Whatever
 * another process writes into the shared part, functions here touch only the shared part, the head
 * and the slots, and an abort by this process ends its own waits. Such a process can delay, lose
 * and repeat tickets, and change a payload while it is read. -EINVAL. Thread: init. */
int wic_channel_join(void *shared, const struct wic_join *join, struct wic_channel **out_channel);

/* Ends the use; every thread of every process must have left. Later attaches fail. The memory stays
 * the caller's. NULL is fine. A process that only stops using the channel need not call it. Thread:
 * init. */
void wic_channel_fini(struct wic_channel *channel);

/* Producer: takes the next ticket and its free slot; parks while the ring is full. A ticket that
 * was taken must be published (or the channel aborted), for consumers wait for it. timeout_ns:
 * WIC_FOREVER, 0 (do not wait) or how long; measured on CLOCK_MONOTONIC. -ETIMEDOUT, -EPIPE once
 * closed, -ECANCELED, -EINVAL. Thread: any. */
int wic_acquire(struct wic_channel *channel, int64_t timeout_ns, struct wic_slot *out_slot);

/* Producer: hands the slot over with `bytes` of payload and wakes a consumer if it is this ticket
 * that they are parked for. Also works on a slot acquired before wic_close. -EINVAL: the ticket is
 * not out or already published, or bytes > slot_bytes (then the slot is still held); -ECANCELED.
 * Thread: any. */
int wic_publish(struct wic_channel *channel, const struct wic_slot *slot, size_t bytes);

/* Consumer: takes the next ticket; parks until it is published. timeout_ns as in wic_acquire.
 * -ETIMEDOUT, -EPIPE when closed and every ticket is taken, -ECANCELED, -EINVAL. Thread: any. */
int wic_wait(struct wic_channel *channel, int64_t timeout_ns, struct wic_slot *out_slot);

/* Consumer: gives the slot back and wakes a producer if it is this slot that they are parked
 * for. In any order. -EINVAL: the ticket was not taken or is already released; -ECANCELED.
 * Thread: any. */
int wic_release(struct wic_channel *channel, const struct wic_slot *slot);

/* The same for several tickets in a row, which costs less a ticket than one by one while many are
 * there. The first two wait for one ticket as above, then take those that are ready with it, up to
 * `most`; they return how many. The others hand over n slots, in ascending order of their tickets:
 * all of them or, when they return an error, none. out_slots: room for `most`. slots: n of them;
 * wic_publish_all: their `bytes` are those of the payload. -EINVAL also: most is 0. Thread: any. */
int wic_acquire_some(struct wic_channel *channel, int64_t timeout_ns, uint32_t most,
                     struct wic_slot *out_slots);
int wic_wait_some(struct wic_channel *channel, int64_t timeout_ns, uint32_t most,
                  struct wic_slot *out_slots);
int wic_publish_all(struct wic_channel *channel, const struct wic_slot *slots, uint32_t n);
int wic_release_all(struct wic_channel *channel, const struct wic_slot *slots, uint32_t n);

/* No more tickets will be acquired, also by producers parked now (-EPIPE): consumers drain what was
 * acquired and published, then get -EPIPE. Idempotent. Thread: any. */
void wic_close(struct wic_channel *channel);

/* Wakes all threads of both sides; every call returns -ECANCELED from now on. Idempotent. Thread:
 * any, signal-safe. */
void wic_abort(struct wic_channel *channel);

/* A snapshot; counters are exact when both sides are at rest. Thread: any. */
void wic_stats_get(const struct wic_channel *channel, struct wic_stats *out_stats);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
