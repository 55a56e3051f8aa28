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
    uint32_t next, low;
    bool aborted;
    uint32_t *tiles; /* scratch for pb_order_unit */
    uint32_t left[]; /* of unit u at u % size */
};

struct pb_in_flight *pb_in_flight_create(const struct pb_grid *grid, enum pb_order order,
                                         uint32_t size)
{
    struct pb_in_flight *w = calloc(1, sizeof *w + size * sizeof w->left[0]);
    if (w == NULL)
        return NULL;
    w->tiles = calloc(pb_order_unit_max(grid, order), sizeof *w->tiles);
    if (w->tiles == NULL) {
        free(w);
        return NULL;
    }
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
    free(w->tiles);
    free(w);
}

static void advance(struct pb_in_flight *w)
{
    bool moved = false;
    while (w->low < w->next && w->left[w->low % w->size] == 0) {
        w->low++;
        moved = true;
    }
    if (moved)
        pthread_cond_broadcast(&w->moved);
}

int pb_in_flight_take(struct pb_in_flight *w, uint32_t *out_unit, uint64_t *parked_ns)
{
    int rc = 0;
    pthread_mutex_lock(&w->lock);
    if (!w->aborted && w->next < w->units && w->next - w->low >= w->size) {
        uint64_t start = pb_clock_mono_ns();
        while (!w->aborted && w->next - w->low >= w->size)
            pthread_cond_wait(&w->moved, &w->lock);
        *parked_ns += pb_clock_mono_ns() - start;
    }
    if (w->aborted) {
        rc = -ECANCELED;
    } else if (w->next == w->units) {
        rc = -EPIPE;
    } else {
        *out_unit = w->next;
        w->left[w->next % w->size] = pb_order_unit(w->grid, w->order, w->next, w->tiles);
        w->next++;
        advance(w); /* a unit without tiles is finished at once */
    }
    pthread_mutex_unlock(&w->lock);
    return rc;
}

void pb_in_flight_done(struct pb_in_flight *w, uint32_t unit)
{
    pthread_mutex_lock(&w->lock);
    w->left[unit % w->size]--;
    advance(w);
    pthread_mutex_unlock(&w->lock);
}

void pb_in_flight_abort(struct pb_in_flight *w)
{
    pthread_mutex_lock(&w->lock);
    w->aborted = true;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}
