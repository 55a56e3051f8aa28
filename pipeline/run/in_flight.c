/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A ring of counters, one per unit in the window: the number of its unfinished tiles. `low` is the
 * first unfinished unit; it advances over finished ones only, so units may finish in any order. */
#include "pipeline/run/in_flight.h"

#include "config/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct pb_in_flight {
    pthread_mutex_t lock; /* all below */
    pthread_cond_t moved;
    const struct pb_grid *grid;
    enum pb_order order;
    uint32_t units, size;
    uint32_t next, low, finished; /* finished: units, wherever they are in the order */
    bool open;                    /* after the last unit another round may come */
    bool aborted;
    struct pb_tile_exchange walk;
    uint32_t *tiles; /* scratch for pb_order_unit */
    uint32_t left[]; /* of unit u at u % size */
};

struct pb_in_flight *pb_in_flight_create(const struct pb_grid *grid, enum pb_order order,
                                         uint32_t size, struct pb_tile_exchange *walk)
{
    struct pb_in_flight *w = calloc(1, sizeof *w + size * sizeof w->left[0]);
    uint32_t *tiles = calloc(pb_order_unit_max(grid, order), sizeof *tiles);
    if (w == NULL || tiles == NULL) {
        free(w);
        free(tiles);
        pb_tile_exchange_fini(walk);
        return NULL;
    }
    w->tiles = tiles;
    w->walk = *walk;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, &attr);
    pthread_condattr_destroy(&attr);
    w->grid = grid;
    w->order = order;
    w->units = pb_order_units(grid, order);
    w->size = size;
    return w;
}

void pb_in_flight_destroy(struct pb_in_flight *w)
{
    if (w == NULL)
        return;
    pthread_cond_destroy(&w->moved);
    pthread_mutex_destroy(&w->lock);
    pb_tile_exchange_fini(&w->walk);
    free(w->tiles);
    free(w);
}

/* With the lock, after a unit has finished. */
static void advance(struct pb_in_flight *w)
{
    w->finished++;
    while (w->low < w->next && w->left[w->low % w->size] == 0)
        w->low++;
    pthread_cond_broadcast(&w->moved);
}

/* With the lock: whether the next unit may go now: 1, 0 or a negative errno. */
static int may_go(struct pb_in_flight *w)
{
    if (w->next - w->low >= w->size)
        return 0;
    return pb_tile_exchange_permits(&w->walk, w->next, w->finished, NULL);
}

/* With the lock: whether there is a next unit and it may go, as above. */
static int has_turn(struct pb_in_flight *w)
{
    if (w->next < w->units)
        return may_go(w);
    return w->open ? 0 : -EPIPE;
}

/* With the lock: parks until the next unit may go. */
static int wait_turn(struct pb_in_flight *w, uint64_t *parked_ns)
{
    uint64_t start = 0;
    int rc = 0;
    while (!w->aborted && (rc = has_turn(w)) == 0) {
        start = start ? start : pb_clock_mono_ns();
        pthread_cond_wait(&w->moved, &w->lock);
    }
    if (start > 0)
        *parked_ns += pb_clock_mono_ns() - start;
    return w->aborted ? -ECANCELED : rc;
}

int pb_in_flight_take(struct pb_in_flight *w, uint32_t *out_unit, uint64_t *parked_ns)
{
    pthread_mutex_lock(&w->lock);
    int rc = wait_turn(w, parked_ns);
    if (rc == 1) {
        *out_unit = w->next;
        w->left[w->next % w->size] = pb_order_unit(w->grid, w->order, w->next, w->tiles);
        if (w->left[w->next++ % w->size] == 0)
            advance(w); /* a unit without tiles is finished at once */
    }
    pthread_mutex_unlock(&w->lock);
    return rc < 0 ? rc : 0;
}

void pb_in_flight_done(struct pb_in_flight *w, uint32_t unit)
{
    pthread_mutex_lock(&w->lock);
    if (--w->left[unit % w->size] == 0)
        advance(w);
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
    while (!w->aborted && w->finished < w->units && rc == 0)
        rc = timeout_ms < 0 ? pthread_cond_wait(&w->moved, &w->lock)
                            : pthread_cond_timedwait(&w->moved, &w->lock, &until);
    rc = w->aborted ? -ECANCELED : w->finished < w->units ? -ETIMEDOUT : 0;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

void pb_in_flight_again(struct pb_in_flight *w, struct pb_tile_exchange *walk)
{
    pthread_mutex_lock(&w->lock);
    pb_tile_exchange_fini(&w->walk);
    w->walk = *walk;
    w->next = w->low = w->finished = 0;
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
