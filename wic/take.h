/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_TAKE_H
#define WIC_TAKE_H
/* Taking the tickets of a channel, and waking those who wait for them; for wic/ only. What holds
 * between the steps is in take.c. Thread: any. */
#include "wic/channel.h"

/* The stress test sleeps or yields here, to widen the window between two steps. */
#ifndef WIC_STALL
#define WIC_STALL() ((void)0)
#endif

/* Tickets in a row, all of one thread. */
struct wic_run {
    uint64_t first;
    uint32_t tickets;
};

static inline struct wic_slot_head *wic_slot_of(struct wic_channel *channel, uint64_t ticket)
{
    return &channel->slot[ticket % channel->slots];
}

/* In a joined channel the other process may take `aborted` back, but not `left`. */
static inline bool wic_is_aborted(struct wic_channel *channel)
{
    return atomic_load(&channel->aborted) != 0 || atomic_load(&channel->left) != 0;
}

/* Takes the next tickets of a side, up to `most`, waiting for the first; the time limit and errors
 * are those of wic_acquire and wic_wait. */
int wic_take(struct wic_channel *channel, enum wic_role role, int64_t timeout_ns, uint32_t most,
             struct wic_run *out_run);
/* To be called after any event that may have made a ticket ready for `role`, or after which its
 * waiters have none to wait for: see "No wake-up is lost" in take.c. Costs one load without
 * waiters. */
void wic_wake_next(struct wic_channel *channel, enum wic_role role);
void wic_wake_all(struct wic_channel *channel, enum wic_role role);
#endif
