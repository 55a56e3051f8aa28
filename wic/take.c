/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * How tickets are taken, how threads sleep and are woken.
 *
 * Tickets. A side's `next` is the ticket it hands out next; ticket t lives in slot t % slots and is
 * *ready* for a side when next == t and the slot's `sequence` is 2t (producer) or 2t + 1
 * (consumer). Only ready tickets are taken, one or several in a row, by a compare-exchange of
 * `next`. So a thread that gives up (time limit, close) holds nothing: no ticket is lost and the
 * sequence has no hole. (With fetch-add first and the wait after it, no thread could give up
 * without leaving a hole.)
 *
 * Sleeping. Waiters have no ticket yet, so several wait for the same one, and the first to wake may
 * take it. They sleep on a word of their side (`futex`), not of the slot: with a word per slot each
 * publication would have to wake all of them or to requeue the rest to the next slot, and abort
 * would have to visit every slot. Here a ticket that becomes ready wakes one thread, and an abort
 * takes one system call a side.
 *
 * No wake-up is lost. Two events make ticket t ready: the store of `sequence` by the other side,
 * and the compare-exchange by which this side took t - 1; the later of the two does it. After
 * either of them the thread calls wic_wake_next(): if there are waiters and a ticket is ready, it
 * changes `futex` and wakes one. A waiter counts itself in `waiters`, reads `futex`, checks for a
 * ready ticket, and sleeps only if `futex` still has the value read (the kernel compares and queues
 * in one step). `sequence`, `next`, `waiters`, `futex` and `aborted` are always accessed seq_cst
 * here, so there is one order of these accesses, and in that order either
 *   - the event comes before the waiter's check: it sees the ready ticket and does not sleep, or
 *   - the check comes before the event, hence the count before wic_wake_next()'s read of it:
 *     wic_wake_next() sees a waiter, and its change of `futex` comes after the waiter's read: the
 *     waiter is queued and the wake finds it or another one, or it is not queued yet and the kernel
 *     refuses to queue it.
 * A thread that takes, publishes or releases several tickets calls wic_wake_next() once, after the
 * last: then one of these is ready, or was taken by a thread that calls wic_wake_next() for the one
 * after it. One woken thread is enough: it takes the ticket, or finds that another thread did; the
 * thread that took it calls wic_wake_next() for the ticket after it. A sleeper whose time limit
 * passes while it is being woken checks once more before it returns. Acquire/release is not enough:
 * it lets the load of `waiters` overtake the store of `sequence`. Fences would be, but
 * ThreadSanitizer does not support them. Relaxed are the statistics, the spin budget and the polls
 * of a spin.
 *
 * One wake at a time. wic_wake_next() makes `futex` odd; a waiter makes it even before it checks,
 * and sleeps on even values only. While it is odd a thread has been woken (or refused to sleep)
 * that has yet to check, and that thread will see every ticket that is ready by then and wake the
 * next; so wic_wake_next() does no more. This saves a system call for each ticket published while a
 * woken thread is not running yet. If all waiters return after their last check, `futex` stays odd
 * without a sleeper, and the next waiter makes it even. (A process killed between that and the wake
 * delays the sleepers until another waiter comes or a time limit passes.) `futex` is compared for
 * equality only: its wrap would lose a wake only if exactly 2^31 wakes fell between a waiter's read
 * and its sleep; `sequence` and `next` have 64 bits and do not wrap.
 *
 * tests/model/channel.pml is the model of this file and of channel.c: a change here needs the same
 * change there. */
#include "wic/take.h"
#include "wic/futex.h"
#include "wic/spin.h"

#include <errno.h>
#include <limits.h>

/* In a row, in which `next` was out of date: more than threads that take tickets can cause. */
#define TRIES_MAX 1000000u

/* Whether a ticket is ready for this side: 0 and the ticket; -EAGAIN: not now; -EPIPE: never
 * again; -EPROTO: what another process wrote makes no sense. */
static int ready_ticket(struct wic_channel *channel, enum wic_role role, uint64_t *out_ticket)
{
    struct wic_side *side = &channel->side[role];
    for (uint32_t tries = 0;; tries++) {
        uint64_t next = atomic_load(&side->next);
        if (next & WIC_CLOSED) {
            return -EPIPE; /* producers only */
        }
        WIC_STALL();
        /* Pairs with the store of sequence in wic_publish (for a consumer) or wic_release
         * (producer). */
        uint64_t sequence = atomic_load(&wic_slot_of(channel, next)->sequence);
        uint64_t wanted = 2 * next + role;
        if (sequence == wanted) {
            *out_ticket = next;
            return 0;
        }
        if (channel->joined && tries == TRIES_MAX) {
            return -EPROTO;
        }
        if (sequence > wanted) {
            continue; /* `next` is out of date: the thread that took it has already changed
                         `sequence` */
        }
        /* Closed, and no ticket left before the end? `next` was read before and cannot pass it.
         * Pairs with the fetch-or in wic_close and the compare-exchange of the last producer. */
        if (role == WIC_CONSUMER &&
            atomic_load(&channel->side[WIC_PRODUCER].next) == (next | WIC_CLOSED)) {
            return -EPIPE;
        }
        return -EAGAIN;
    }
}

/* How many tickets from this one on are ready, which it is: up to `most`. */
static uint32_t count_ready(struct wic_channel *channel, enum wic_role role, uint64_t ticket,
                            uint32_t most)
{
    uint32_t n = 1;
    /* Pairs as in ready_ticket. */
    while (n < most &&
           atomic_load(&wic_slot_of(channel, ticket + n)->sequence) == 2 * (ticket + n) + role) {
        n++;
    }
    return n;
}

/* Takes the next tickets, up to `most`, if one is ready: 0, -EAGAIN, -EPIPE, -ECANCELED or
 * -EPROTO. */
static int try_take(struct wic_channel *channel, enum wic_role role, uint32_t most,
                    struct wic_run *out_run)
{
    for (;;) {
        if (wic_is_aborted(channel)) { /* pairs with the stores in wic_abort */
            return -ECANCELED;
        }
        uint64_t ticket;
        int rc = ready_ticket(channel, role, &ticket);
        if (rc != 0) {
            return rc;
        }
        WIC_STALL();
        uint32_t n = count_ready(channel, role, ticket, most);
        WIC_STALL();
        /* Ready tickets stay ready until they are taken, so no other check is needed. Failure:
         * another thread took the first, or the channel was closed. */
        uint64_t expected = ticket;
        if (atomic_compare_exchange_strong(&channel->side[role].next, &expected, ticket + n)) {
            *out_run = (struct wic_run){ticket, n};
            return 0;
        }
    }
}

void wic_wake_all(struct wic_channel *channel, enum wic_role role)
{
    struct wic_side *side = &channel->side[role];
    atomic_fetch_add(&side->futex, 2); /* pairs with the load in futex_before_check */
    WIC_STALL();
    wic_futex_wake(&side->futex, INT_MAX, channel->shared);
}

void wic_wake_next(struct wic_channel *channel, enum wic_role role)
{
    struct wic_side *side = &channel->side[role];
    WIC_STALL();
    if (atomic_load(&side->waiters) == 0) { /* pairs with the add in wait_for_ticket */
        return;
    }
    uint64_t ticket;
    int rc = ready_ticket(channel, role, &ticket);
    if (rc != 0) {
        if (rc == -EPIPE) {
            wic_wake_all(channel, role); /* no further event will wake them */
        }
        return;
    }
    WIC_STALL();
    uint32_t futex = atomic_load(&side->futex);
    /* Odd, or just changed by another wic_wake_next: a woken thread has yet to check. */
    if (futex % 2 == 0 && atomic_compare_exchange_strong(&side->futex, &futex, futex + 1)) {
        WIC_STALL();
        wic_futex_wake(&side->futex, 1, channel->shared);
    }
}

/* A hint: concurrent writers may overwrite each other. */
static void set_spin(struct wic_side *side, uint32_t budget)
{
    atomic_store_explicit(&side->spin, budget, memory_order_relaxed);
}

/* One round of a poll. False: the time limit is closer than a nap. */
static bool rest(const struct wic_channel *channel, int64_t deadline_ns)
{
    if (channel->nap_ns == 0) {
        wic_cpu_relax();
        return true;
    }
    if (deadline_ns - wic_now_ns() < (int64_t)channel->nap_ns) {
        return false;
    }
    wic_nap_ns(channel->nap_ns);
    return true;
}

/* Polls for a short time. It reads the slot's sequence only, so as not to slow down the other side;
 * close and abort are seen afterwards. */
static int spin_take(struct wic_channel *channel, enum wic_role role, int64_t deadline_ns,
                     uint32_t most, struct wic_run *out_run)
{
    struct wic_side *side = &channel->side[role];
    uint32_t budget = atomic_load_explicit(&side->spin, memory_order_relaxed);
    budget = budget < channel->spin_limit ? budget : channel->spin_limit;
    uint64_t next = atomic_load(&side->next) & ~WIC_CLOSED;
    struct wic_slot_head *slot = wic_slot_of(channel, next);
    for (uint32_t round = 0; round < budget && rest(channel, deadline_ns); round++) {
        if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) < 2 * next + role) {
            continue;
        }
        int rc = try_take(channel, role, most, out_run);
        if (rc != -EAGAIN) {
            set_spin(side, wic_spin_after_success(budget, round, channel->spin_limit));
            return rc;
        }
        next = atomic_load(&side->next) & ~WIC_CLOSED; /* another thread took it */
        slot = wic_slot_of(channel, next);
    }
    return -EAGAIN;
}

/* Sleeps until `futex` is changed. 0: check again; else: check once more, then return this
 * error. */
static int park(struct wic_channel *channel, struct wic_side *side, uint32_t futex,
                int64_t deadline_ns)
{
    int64_t before = wic_now_ns();
    int rc = wic_futex_wait(&side->futex, futex, deadline_ns, channel->shared);
    int64_t after = wic_now_ns();
    if (rc != -EAGAIN) {
        uint64_t parked = (uint64_t)(after - before);
        atomic_fetch_add_explicit(&side->parks, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&side->parked_ns, parked, memory_order_relaxed);
        uint32_t budget = atomic_load_explicit(&side->spin, memory_order_relaxed);
        set_spin(side, wic_spin_after_park(budget, after - before, channel->spin_limit));
    }
    if (rc != 0 && rc != -EAGAIN) {
        return rc;
    }
    /* The time limit also holds for a thread that is woken again and again and never gets the
     * ticket. */
    return after >= deadline_ns ? -ETIMEDOUT : 0;
}

/* The value to sleep on, even. A thread that consumes a wake (odd) checks after this, so the next
 * ticket needs a wake of its own from now on. Pairs with the changes in wic_wake_next and
 * wic_wake_all. */
static uint32_t futex_before_check(struct wic_side *side)
{
    uint32_t futex = atomic_load(&side->futex);
    while (futex % 2 != 0) {
        if (atomic_compare_exchange_weak(&side->futex, &futex, futex + 1)) {
            return futex + 1;
        }
    }
    return futex;
}

static int wait_for_ticket(struct wic_channel *channel, enum wic_role role, int64_t deadline_ns,
                           uint32_t most, struct wic_run *out_run)
{
    struct wic_side *side = &channel->side[role];
    int gave_up = 0;
    int rc;
    atomic_fetch_add(&side->waiters, 1); /* pairs with the load in wic_wake_next */
    for (;;) {
        WIC_STALL();
        uint32_t futex = futex_before_check(side);
        WIC_STALL();
        rc = try_take(channel, role, most, out_run);
        if (rc != -EAGAIN || gave_up != 0) {
            break;
        }
        WIC_STALL();
        gave_up = park(channel, side, futex, deadline_ns);
    }
    atomic_fetch_sub(&side->waiters, 1);
    return rc == -EAGAIN ? gave_up : rc;
}

static int64_t deadline_after(int64_t timeout_ns)
{
    int64_t now = wic_now_ns();
    bool never = timeout_ns == WIC_FOREVER || timeout_ns > WIC_NO_DEADLINE - now;
    return never ? WIC_NO_DEADLINE : now + timeout_ns;
}

int wic_take(struct wic_channel *channel, enum wic_role role, int64_t timeout_ns, uint32_t most,
             struct wic_run *out_run)
{
    most = most < channel->slots ? most : channel->slots;
    int rc = try_take(channel, role, most, out_run);
    if (rc == -EAGAIN) {
        if (timeout_ns == 0) {
            return -ETIMEDOUT;
        }
        int64_t deadline_ns = deadline_after(timeout_ns);
        rc = spin_take(channel, role, deadline_ns, most, out_run);
        if (rc == -EAGAIN) {
            rc = wait_for_ticket(channel, role, deadline_ns, most, out_run);
        }
    }
    if (rc == 0) {
        wic_wake_next(channel, role); /* the ticket after ours may be ready already */
    }
    return rc;
}
