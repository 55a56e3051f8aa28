/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Several readers work on units at the same time, therefore tiles of neighbouring units arrive
 * mixed. For arrivals, each unit in the window has the count of its tiles that have not arrived and
 * the sum of their numbers: a tile that arrives twice, or is of another unit, contradicts one of
 * them. */
#include "pipeline/run/stream/in_flight.h"

#include "config/base/clock.h"
#include "pipeline/profile/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* --- units in progress
 * ---------------------------------------------------------------------------- */

/* Units of the visiting order that are in progress, with the count of their unfinished tiles, and a
 * walk along the schedule. Units may finish in any order. No lock: the user's. */
struct window {
    const struct pb_grid *grid;
    enum pb_order order;
    uint32_t units, size;
    uint32_t next; /* first unit that has not begun */
    uint32_t low;  /* first unit that has not finished */
    uint32_t over; /* count of finished units anywhere in the order */
    struct pb_tile_exchange walk;
    uint32_t *tiles; /* tiles of the unit that began last */
    uint32_t *left;  /* left[u % size]: unfinished tiles of unit u */
};

static void window_fini(struct window *w)
{
    pb_tile_exchange_fini(&w->walk);
    free(w->tiles);
    free(w->left);
    *w = (struct window){0};
}

/* At most `size` units may be in progress. grid: borrowed. Takes the content of *walk, also on
 * failure. -ENOMEM. */
static int window_init(struct window *w, const struct pb_grid *grid, enum pb_order order,
                       uint32_t size, struct pb_tile_exchange *walk)
{
    *w = (struct window){.grid = grid,
                         .order = order,
                         .units = pb_order_units(grid, order),
                         .size = size,
                         .walk = *walk,
                         .tiles = calloc(pb_order_unit_max(grid, order), sizeof *w->tiles),
                         .left = calloc(size, sizeof *w->left)};
    if (w->tiles != NULL && w->left != NULL)
        return 0;
    window_fini(w);
    return -ENOMEM;
}

/* Starts all units again. Takes the content of *walk. */
static void window_again(struct window *w, struct pb_tile_exchange *walk)
{
    pb_tile_exchange_fini(&w->walk);
    w->walk = *walk;
    w->next = w->low = w->over = 0;
}

static bool window_is_full(const struct window *w)
{
    return w->next - w->low >= w->size;
}

static void unit_over(struct window *w)
{
    w->over++;
    while (w->low < w->next && w->left[w->low % w->size] == 0)
        w->low++;
}

/* Begins the next unit; the window must not be full. A unit without tiles finishes at once. Returns
 * the count of its tiles; they are in w->tiles. */
static uint32_t window_begin(struct window *w)
{
    uint32_t n = pb_order_unit(w->grid, w->order, w->next, w->tiles);
    w->left[w->next++ % w->size] = n;
    if (n == 0)
        unit_over(w);
    return n;
}

/* Counts a finished tile of a unit in progress. Returns true if the unit has finished with it. */
static bool window_done(struct window *w, uint32_t unit)
{
    if (--w->left[unit % w->size] > 0)
        return false;
    unit_over(w);
    return true;
}

/* --- the end of readers and writers
 * --------------------------------------------------------------- */

struct pb_in_flight {
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t moved;
    struct window units;
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
    if (window_init(&w->units, grid, order, size, walk) < 0) {
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
    window_fini(&w->units);
    free(w);
}

/* Call it with the lock held. 1 if the next unit may begin now, 0 if not, or a negative errno. */
static int may_go(struct pb_in_flight *w)
{
    if (window_is_full(&w->units))
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
    uint32_t n = window_begin(&w->units);
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
    if (window_done(&w->units, unit))
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
    window_again(&w->units, walk);
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

/* --- the end of the executor
 * ---------------------------------------------------------------------- */

struct pb_arrivals {
    pthread_mutex_t lock; /* protects all below */
    struct window units;  /* over: all tiles have arrived */
    bool counts_parts, repeats;
    struct pb_exchange_config exchange; /* exchange of repeated rounds */
    uint64_t unit_bytes;
    struct pb_part_exchange parts;
    uint64_t numbers[]; /* numbers[u % size]: sum of the missing tiles' numbers of unit u */
};

struct pb_arrivals *pb_arrivals_create(const struct pb_grid *grid, enum pb_order order,
                                       uint32_t size, struct pb_tile_exchange *walk,
                                       struct pb_part_exchange *parts)
{
    struct pb_arrivals *a = calloc(1, sizeof *a + size * sizeof a->numbers[0]);
    if (a == NULL)
        pb_tile_exchange_fini(walk);
    if (a == NULL || window_init(&a->units, grid, order, size, walk) < 0) {
        free(a);
        if (parts != NULL)
            pb_part_exchange_fini(parts);
        return NULL;
    }
    pthread_mutex_init(&a->lock, NULL);
    a->counts_parts = parts != NULL;
    if (parts != NULL)
        a->parts = *parts;
    return a;
}

void pb_arrivals_destroy(struct pb_arrivals *a)
{
    if (a == NULL)
        return;
    pthread_mutex_destroy(&a->lock);
    window_fini(&a->units);
    pb_part_exchange_fini(&a->parts);
    free(a);
}

void pb_arrivals_repeat(struct pb_arrivals *a, const struct pb_exchange_config *exchange,
                        uint64_t unit_bytes)
{
    a->exchange = *exchange;
    a->unit_bytes = unit_bytes;
    a->repeats = true;
}

/* Starts a round after the last tile of the one before. */
static int begin_again(struct pb_arrivals *a, struct pb_err *err)
{
    struct pb_tile_exchange walk;
    int rc = pb_tile_exchange_init(&walk, &a->exchange, a->units.units, a->units.size,
                                   a->unit_bytes, err);
    if (rc == 0)
        window_again(&a->units, &walk);
    return rc;
}

/* Begins the units up to this one, as far as the window allows. */
static void enter(struct pb_arrivals *a, uint32_t unit)
{
    struct window *units = &a->units;
    while (units->next <= unit && !window_is_full(units)) {
        uint64_t *numbers = &a->numbers[units->next % units->size];
        uint32_t n = window_begin(units);
        *numbers = 0;
        for (uint32_t i = 0; i < n; i++)
            *numbers += units->tiles[i];
    }
}

/* Returns NULL, or the error of the tile. */
static const char *fault_of(struct pb_arrivals *a, const struct pb_tile *tile, struct pb_err *err)
{
    struct window *units = &a->units;
    if (a->repeats && units->over == units->units && begin_again(a, err) < 0)
        return "arrived in a round that cannot begin";
    if (tile->unit < units->units)
        enter(a, tile->unit);
    if (tile->unit >= units->next || tile->unit < units->low)
        return "is not of a unit that is under way";
    uint32_t left = units->left[tile->unit % units->size];
    uint64_t *numbers = &a->numbers[tile->unit % units->size];
    if (left == 0)
        return "has arrived before";
    *numbers -= tile->number;
    if (left == 1 && *numbers != 0)
        return "is not of its unit, or another one is not";
    if (pb_tile_exchange_permits(&units->walk, tile->unit, units->over, err) != 1)
        return "arrived before the pattern's step that sends it";
    if (a->counts_parts && pb_part_exchange_tile(&a->parts, tile->parts, NULL) < 0)
        return "arrived without all of its parts";
    (void)window_done(units, tile->unit);
    return NULL;
}

int pb_arrivals_note(struct pb_arrivals *a, const struct pb_tile *tile, struct pb_err *err)
{
    if (a == NULL)
        return 0;
    pthread_mutex_lock(&a->lock);
    const char *fault = fault_of(a, tile, err);
    pthread_mutex_unlock(&a->lock);
    return fault == NULL
               ? 0
               : pb_fail(err, PB_E_SYSTEM, "tile %u of unit %u %s; please report the input",
                         tile->number, tile->unit, fault);
}
