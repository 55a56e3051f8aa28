/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_WIC_GROUP_H
#define TEST_WIC_GROUP_H
/* For the tests of wic/: a channel on the heap, and a thread group of producer and consumer threads
 * that move tickets through it and check every one. Threads count what is wrong instead of
 * asserting, for Check takes assertions from the main thread only. */
#include "wic/channel.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS         INT64_C(1000000)
#define CREW_MAX   8
#define GROUP_MOST 8
#define SLOT_U64   16 /* payload of a thread group's slots, in numbers */

static inline struct wic_channel *channel_of(const struct wic_options *options,
                                             uint64_t first_ticket, uint32_t first_signal)
{
    size_t bytes = (wic_channel_bytes(options) + 4095) / 4096 * 4096;
    void *memory = aligned_alloc(4096, bytes);
    struct wic_channel *channel = NULL;
    ck_assert_ptr_nonnull(memory);
    memset(memory, 0xa5, bytes);
    ck_assert_int_eq(wic_channel_init_at(memory, options, first_ticket, first_signal, &channel), 0);
    return channel;
}

static inline struct wic_channel *channel_at(uint32_t slots, size_t slot_bytes,
                                             uint64_t first_ticket, uint32_t first_signal)
{
    struct wic_options options = {.slots = slots, .slot_bytes = slot_bytes};
    return channel_of(&options, first_ticket, first_signal);
}

static inline struct wic_channel *channel_new(uint32_t slots, size_t slot_bytes)
{
    return channel_at(slots, slot_bytes, 0, 0);
}

static inline void channel_free(struct wic_channel *channel)
{
    wic_channel_fini(channel);
    free(channel);
}

/* Acquires a slot, which must work at once, on one thread. */
static inline struct wic_slot acquired(struct wic_channel *channel)
{
    struct wic_slot slot;
    ck_assert_int_eq(wic_acquire(channel, 0, &slot), 0);
    return slot;
}

static inline struct wic_slot waited(struct wic_channel *channel)
{
    struct wic_slot slot;
    ck_assert_int_eq(wic_wait(channel, 0, &slot), 0);
    return slot;
}

static inline void publish_next(struct wic_channel *channel)
{
    struct wic_slot slot = acquired(channel);
    ck_assert_int_eq(wic_publish(channel, &slot, 0), 0);
}

static inline void release_next(struct wic_channel *channel, uint64_t ticket)
{
    struct wic_slot slot = waited(channel);
    ck_assert_uint_eq(slot.ticket, ticket);
    ck_assert_int_eq(wic_release(channel, &slot), 0);
}

static inline struct wic_stats stats_of(const struct wic_channel *channel)
{
    struct wic_stats stats;
    wic_stats_get(channel, &stats);
    return stats;
}

static inline void sleep_ns(int64_t ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    nanosleep(&time, NULL);
}

static inline int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Waits until this many threads of a side are registered as waiting, then long enough to be asleep.
 */
static inline void until_waiting(struct wic_channel *channel, enum wic_role role, uint32_t threads)
{
    while (atomic_load(&channel->side[role].waiters) != threads) {
        sleep_ns(MS);
    }
    sleep_ns(20 * MS);
}

struct group {
    struct wic_channel *channel;
    int producers, consumers;
    int64_t timeout_ns;     /* limit of every acquire and wait; on -ETIMEDOUT they try again */
    uint32_t most;          /* tickets that a thread takes with one call; 0: always one */
    uint64_t first, count;  /* tickets first .. first + count - 1 are to be moved */
    atomic_ullong to_start; /* tickets not yet promised to a producer */
    atomic_uchar *seen;     /* indexed by ticket - first: number of times that it was consumed */
    atomic_uint wrong;      /* number of events that should not have happened */
    atomic_uint timeouts;
    atomic_int last_rc[2 * CREW_MAX]; /* last return code of each thread's loop */
    pthread_t threads[2 * CREW_MAX];
};

struct group_thread {
    struct group *group;
    int index;
};

static inline uint64_t group_value(uint64_t ticket, int i)
{
    return (ticket + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)i;
}

static inline void group_fill(struct group *group, const struct wic_slot *slot)
{
    uint64_t *numbers = slot->data;
    for (int i = 0; i < SLOT_U64; i++) {
        numbers[i] = group_value(slot->ticket, i);
    }
    memcpy(slot->user, &slot->ticket, sizeof(slot->ticket));
    if (slot->bytes != SLOT_U64 * sizeof(uint64_t) ||
        slot->index != slot->ticket % group->channel->slots) {
        group->wrong++;
    }
}

static inline void group_check(struct group *group, const struct wic_slot *slot)
{
    const uint64_t *numbers = slot->data;
    bool good = slot->ticket >= group->first && slot->ticket < group->first + group->count &&
                slot->bytes == 1 + slot->ticket % (SLOT_U64 * sizeof(uint64_t)) &&
                memcmp(slot->user, &slot->ticket, sizeof(slot->ticket)) == 0;
    for (int i = 0; i < SLOT_U64; i++) {
        good = good && numbers[i] == group_value(slot->ticket, i);
    }
    if (!good || atomic_fetch_add(&group->seen[slot->ticket - group->first], 1) != 0) {
        group->wrong++;
    }
}

/* Until the tickets are used up or the channel refuses. */
static inline int group_produce(struct group *group)
{
    struct wic_slot slot;
    for (;;) {
        unsigned long long left = atomic_load(&group->to_start);
        if (left == 0) {
            return 0;
        }
        if (!atomic_compare_exchange_weak(&group->to_start, &left, left - 1)) {
            continue;
        }
        int rc;
        while ((rc = wic_acquire(group->channel, group->timeout_ns, &slot)) == -ETIMEDOUT) {
            group->timeouts++;
        }
        if (rc != 0) {
            return rc;
        }
        group_fill(group, &slot);
        rc = wic_publish(group->channel, &slot, 1 + slot.ticket % (SLOT_U64 * sizeof(uint64_t)));
        if (rc != 0) {
            return rc;
        }
    }
}

/* Until the channel refuses; tickets of one thread must rise. */
static inline int group_consume(struct group *group)
{
    struct wic_slot slot;
    uint64_t least = 0;
    for (;;) {
        int rc = wic_wait(group->channel, group->timeout_ns, &slot);
        if (rc == -ETIMEDOUT) {
            group->timeouts++;
            continue;
        }
        if (rc != 0) {
            return rc;
        }
        if (slot.ticket < least) {
            group->wrong++;
        }
        least = slot.ticket + 1;
        group_check(group, &slot);
        rc = wic_release(group->channel, &slot);
        if (rc != 0) {
            return rc;
        }
    }
}

static inline uint32_t group_promised(struct group *group)
{
    unsigned long long left = atomic_load(&group->to_start), n;
    do {
        n = left < group->most ? left : group->most;
    } while (!atomic_compare_exchange_weak(&group->to_start, &left, left - n));
    return (uint32_t)n;
}

/* Like group_produce and group_consume, several tickets at a time. */
static inline int group_produce_some(struct group *group)
{
    struct wic_slot slots[GROUP_MOST];
    for (uint32_t left; (left = group_promised(group)) > 0;) {
        while (left > 0) {
            int n = wic_acquire_some(group->channel, group->timeout_ns, left, slots);
            group->timeouts += n == -ETIMEDOUT;
            for (int i = 0; i < n; i++) {
                group_fill(group, &slots[i]);
                slots[i].bytes = 1 + slots[i].ticket % (SLOT_U64 * sizeof(uint64_t));
            }
            int rc = n > 0             ? wic_publish_all(group->channel, slots, (uint32_t)n)
                     : n == -ETIMEDOUT ? 0
                                       : n;
            if (rc != 0) {
                return rc;
            }
            left -= n > 0 ? (uint32_t)n : 0;
        }
    }
    return 0;
}

static inline int group_consume_some(struct group *group)
{
    struct wic_slot slots[GROUP_MOST];
    uint64_t least = 0;
    for (;;) {
        int n = wic_wait_some(group->channel, group->timeout_ns, group->most, slots);
        group->timeouts += n == -ETIMEDOUT;
        if (n < 0 && n != -ETIMEDOUT) {
            return n;
        }
        for (int i = 0; i < n; i++) {
            group->wrong +=
                slots[i].ticket < least || slots[i].ticket != slots[0].ticket + (uint64_t)i;
            group_check(group, &slots[i]);
        }
        least = n > 0 ? slots[n - 1].ticket + 1 : least;
        int rc = n > 0 ? wic_release_all(group->channel, slots, (uint32_t)n) : 0;
        if (rc != 0) {
            return rc;
        }
    }
}

static inline int group_run(struct group *group, bool produces)
{
    if (group->most > 0) {
        return produces ? group_produce_some(group) : group_consume_some(group);
    }
    return produces ? group_produce(group) : group_consume(group);
}

static inline void *group_main(void *argument)
{
    struct group_thread *self = argument;
    struct group *group = self->group;
    group->last_rc[self->index] = group_run(group, self->index < group->producers);
    free(self);
    return NULL;
}

static inline void group_start(struct group *group, struct wic_channel *channel, uint64_t first,
                               uint64_t count)
{
    group->channel = channel;
    group->first = first;
    group->count = count;
    atomic_init(&group->to_start, count);
    group->seen = calloc(count + 1, sizeof(*group->seen));
    for (int i = 0; i < group->producers + group->consumers; i++) {
        struct group_thread *thread = malloc(sizeof(*thread));
        *thread = (struct group_thread){group, i};
        ck_assert_int_eq(pthread_create(&group->threads[i], NULL, group_main, thread), 0);
    }
}

static inline void group_join(struct group *group, int from, int to)
{
    for (int i = from; i < to; i++) {
        pthread_join(group->threads[i], NULL);
    }
}

/* Lets all tickets pass, closes, and checks that each was consumed exactly once and whole. */
static inline void group_finish(struct group *group)
{
    group_join(group, 0, group->producers);
    wic_close(group->channel);
    group_join(group, group->producers, group->producers + group->consumers);
    ck_assert_uint_eq(group->wrong, 0);
    for (int i = 0; i < group->producers + group->consumers; i++) {
        ck_assert_int_eq(group->last_rc[i], i < group->producers ? 0 : -EPIPE);
    }
    for (uint64_t i = 0; i < group->count; i++) {
        ck_assert_msg(group->seen[i] == 1, "ticket %llu consumed %d times",
                      (unsigned long long)(group->first + i), group->seen[i]);
    }
    struct wic_stats stats = stats_of(group->channel);
    ck_assert_uint_eq(stats.published, group->count);
    ck_assert_uint_eq(stats.consumed, group->count);
    ck_assert_uint_le(stats.high_water, stats.slots);
    ck_assert_uint_eq(atomic_load(&group->channel->side[WIC_PRODUCER].waiters), 0);
    ck_assert_uint_eq(atomic_load(&group->channel->side[WIC_CONSUMER].waiters), 0);
    free(group->seen);
}

/* Aborts, and checks that everybody leaves with -ECANCELED (or had finished before). */
static inline void group_abort(struct group *group)
{
    wic_abort(group->channel);
    group_join(group, 0, group->producers + group->consumers);
    ck_assert_uint_eq(group->wrong, 0);
    for (int i = 0; i < group->producers + group->consumers; i++) {
        int rc = group->last_rc[i];
        ck_assert(rc == -ECANCELED || (rc == 0 && i < group->producers));
    }
    free(group->seen);
}
#endif
