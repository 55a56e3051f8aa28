/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/in_flight.h"

#include "config/base/clock.h"
#include "pipeline/profile/work.h"
#include "pipeline/run/stream/unit_window.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct pb_in_flight {
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t moved;
    struct pb_unit_window units;
    uint32_t begun, given; /* tiles of the unit begun last; those of them that were handed out */
    bool open;             /* another round may follow the last unit */
    bool aborted;
};

struct pb_in_flight *pb_in_flight_create(const struct pb_grid *grid, enum pb_order order,
                                         uint32_t size, struct pb_tile_exchange *walk)
{
    struct pb_in_flight *w = calloc(1, sizeof *w);
    pthread_condattr_t attr;
    if (w == NULL) {
        pb_tile_exchange_fini(walk);
        return NULL;
    }
    if (pb_unit_window_init(&w->units, grid, order, size, walk) < 0) {
        free(w);
        return NULL;
    }
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, &attr);
    pthread_condattr_destroy(&attr);
    return w;
}

void pb_in_flight_destroy(struct pb_in_flight *w)
{
    if (w == NULL)
        return;
    pthread_cond_destroy(&w->moved);
    pthread_mutex_destroy(&w->lock);
    pb_unit_window_fini(&w->units);
    free(w);
}

/* Call it with the lock held. 1 if the next unit may begin now, 0 if not, or a negative errno. */
static int may_go(struct pb_in_flight *w)
{
    if (pb_unit_window_is_full(&w->units))
        return 0;
    return pb_tile_exchange_permits(&w->units.walk, w->units.next, w->units.over, NULL);
}

/* Call it with the lock held. Same results; also 0 or -EPIPE after the last unit. */
static int has_turn(struct pb_in_flight *w)
{
    if (w->units.next < w->units.units)
        return may_go(w);
    return w->open ? 0 : -EPIPE;
}

/* Call it with the lock held. Parks until the next unit may begin, or, if tiles are handed out,
 * until another thread has begun one. */
static int wait_turn(struct pb_in_flight *w, uint64_t *parked_ns)
{
    uint64_t start = 0;
    int rc = 0;
    while (!w->aborted && w->given == w->begun && (rc = has_turn(w)) == 0) {
        start = start ? start : pb_clock_mono_ns();
        pb_work_begin(PB_WORK_WAIT, w->units.next);
        pthread_cond_wait(&w->moved, &w->lock);
        pb_work_end();
    }
    if (start > 0)
        *parked_ns += pb_clock_mono_ns() - start;
    return w->aborted ? -ECANCELED : rc;
}

/* Call it with the lock held. Begins the next unit. Returns the count of its tiles. */
static uint32_t begin_unit(struct pb_in_flight *w)
{
    uint32_t n = pb_unit_window_begin(&w->units);
    if (n == 0)
        pthread_cond_broadcast(&w->moved);
    return n;
}

int pb_in_flight_take(struct pb_in_flight *w, uint32_t *out_unit, uint64_t *parked_ns)
{
    pthread_mutex_lock(&w->lock);
    int rc = wait_turn(w, parked_ns);
    if (rc == 1) {
        *out_unit = w->units.next;
        (void)begin_unit(w);
    }
    pthread_mutex_unlock(&w->lock);
    return rc < 0 ? rc : 0;
}

/* Call it with the lock held. Hands out the next tile of the unit that was begun. */
static void give_tile(struct pb_in_flight *w, uint32_t *out_unit, uint32_t *out_number)
{
    *out_unit = w->units.next - 1;
    *out_number = w->units.tiles[w->given++];
}

int pb_in_flight_try_tile(struct pb_in_flight *w, uint32_t *out_unit, uint32_t *out_number)
{
    pthread_mutex_lock(&w->lock);
    while (!w->aborted && w->given == w->begun && has_turn(w) == 1) {
        w->begun = begin_unit(w);
        w->given = 0;
    }
    int n = !w->aborted && w->given < w->begun;
    if (n == 1)
        give_tile(w, out_unit, out_number);
    pthread_mutex_unlock(&w->lock);
    return n;
}

int pb_in_flight_take_tile(struct pb_in_flight *w, uint32_t *out_unit, uint32_t *out_number,
                           uint64_t *parked_ns)
{
    int rc = 0;
    pthread_mutex_lock(&w->lock);
    while ((rc = wait_turn(w, parked_ns)) >= 0 && w->given == w->begun) {
        w->begun = begin_unit(w);
        w->given = 0;
    }
    if (rc >= 0)
        give_tile(w, out_unit, out_number);
    pthread_mutex_unlock(&w->lock);
    return rc < 0 ? rc : 0;
}

void pb_in_flight_done(struct pb_in_flight *w, uint32_t unit)
{
    pthread_mutex_lock(&w->lock);
    if (pb_unit_window_done(&w->units, unit))
        pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

void pb_in_flight_open(struct pb_in_flight *w, bool open)
{
    pthread_mutex_lock(&w->lock);
    w->open = open;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

int pb_in_flight_wait(struct pb_in_flight *w, int64_t timeout_ms)
{
    struct timespec until = pb_clock_mono_after(timeout_ms < 0 ? 0 : timeout_ms);
    int rc = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->aborted && w->units.over < w->units.units && rc == 0)
        rc = timeout_ms < 0 ? pthread_cond_wait(&w->moved, &w->lock)
                            : pthread_cond_timedwait(&w->moved, &w->lock, &until);
    rc = w->aborted ? -ECANCELED : w->units.over < w->units.units ? -ETIMEDOUT : 0;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

void pb_in_flight_again(struct pb_in_flight *w, struct pb_tile_exchange *walk)
{
    pthread_mutex_lock(&w->lock);
    pb_unit_window_again(&w->units, walk);
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

void pb_in_flight_ended(struct pb_in_flight *w)
{
    pthread_mutex_lock(&w->lock);
    w->aborted = w->aborted || w->open;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

void pb_in_flight_abort(struct pb_in_flight *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->aborted = true;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}
