/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Several readers work on units at the same time, therefore tiles of neighbouring units arrive
 * mixed. Each unit in the window has the count of its tiles that have not arrived and the sum of
 * their numbers: a tile that arrives twice, or is of another unit, contradicts one of them. */
#include "pipeline/run/stream/arrivals.h"
#include "pipeline/run/stream/unit_window.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct pb_arrivals {
    pthread_mutex_t lock;        /* protects all below */
    struct pb_unit_window units; /* over: all tiles have arrived */
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
    if (a == NULL || pb_unit_window_init(&a->units, grid, order, size, walk) < 0) {
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
    pb_unit_window_fini(&a->units);
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
        pb_unit_window_again(&a->units, &walk);
    return rc;
}

/* Begins the units up to this one, as far as the window allows. */
static void enter(struct pb_arrivals *a, uint32_t unit)
{
    struct pb_unit_window *units = &a->units;
    while (units->next <= unit && !pb_unit_window_is_full(units)) {
        uint64_t *numbers = &a->numbers[units->next % units->size];
        uint32_t n = pb_unit_window_begin(units);
        *numbers = 0;
        for (uint32_t i = 0; i < n; i++)
            *numbers += units->tiles[i];
    }
}

/* Returns NULL, or the error of the tile. */
static const char *fault_of(struct pb_arrivals *a, const struct pb_tile *tile, struct pb_err *err)
{
    struct pb_unit_window *units = &a->units;
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
    (void)pb_unit_window_done(units, tile->unit);
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
