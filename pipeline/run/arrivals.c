/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Several readers work on units at the same time, so tiles of neighbouring units arrive mixed. For
 * each unit in the window stands how many of its tiles have not arrived and the sum of their
 * numbers: a tile that comes twice, or is of another unit, shows in one of them. */
#include "pipeline/run/arrivals.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct unit_left {
    uint32_t tiles;
    uint64_t numbers; /* sum */
};

struct pb_arrivals {
    pthread_mutex_t lock; /* all below */
    const struct pb_grid *grid;
    enum pb_order order;
    uint32_t units, size;
    uint32_t next; /* the first unit that was not entered below */
    uint32_t low;  /* the first that has not arrived as a whole */
    uint32_t whole;
    struct pb_tile_exchange walk;
    bool counts_parts, repeats;
    struct pb_exchange_config exchange; /* of repeats */
    uint64_t unit_bytes;
    struct pb_part_exchange parts;
    uint32_t *tiles;         /* scratch for pb_order_unit */
    struct unit_left left[]; /* of unit u at u % size */
};

struct pb_arrivals *pb_arrivals_create(const struct pb_grid *grid, enum pb_order order,
                                       uint32_t size, struct pb_tile_exchange *walk,
                                       struct pb_part_exchange *parts)
{
    struct pb_arrivals *a = calloc(1, sizeof *a + size * sizeof a->left[0]);
    uint32_t *tiles = calloc(pb_order_unit_max(grid, order), sizeof *tiles);
    if (a == NULL || tiles == NULL) {
        free(a);
        free(tiles);
        pb_tile_exchange_fini(walk);
        if (parts != NULL)
            pb_part_exchange_fini(parts);
        return NULL;
    }
    pthread_mutex_init(&a->lock, NULL);
    a->grid = grid;
    a->order = order;
    a->units = pb_order_units(grid, order);
    a->size = size;
    a->tiles = tiles;
    a->walk = *walk;
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
    pb_tile_exchange_fini(&a->walk);
    pb_part_exchange_fini(&a->parts);
    free(a->tiles);
    free(a);
}

void pb_arrivals_repeat(struct pb_arrivals *a, const struct pb_exchange_config *exchange,
                        uint64_t unit_bytes)
{
    a->exchange = *exchange;
    a->unit_bytes = unit_bytes;
    a->repeats = true;
}

/* After the last tile of a round. */
static int begin_again(struct pb_arrivals *a, struct pb_err *err)
{
    struct pb_tile_exchange walk;
    int rc = pb_tile_exchange_init(&walk, &a->exchange, a->units, a->size, a->unit_bytes, err);
    if (rc < 0)
        return rc;
    pb_tile_exchange_fini(&a->walk);
    a->walk = walk;
    a->next = a->low = a->whole = 0;
    return 0;
}

static void close_units(struct pb_arrivals *a)
{
    while (a->low < a->next && a->left[a->low % a->size].tiles == 0)
        a->low++;
}

/* Enters the units up to this one, as far as the window goes. */
static void enter(struct pb_arrivals *a, uint32_t unit)
{
    for (; a->next <= unit && a->next - a->low < a->size; a->next++) {
        struct unit_left *left = &a->left[a->next % a->size];
        *left = (struct unit_left){pb_order_unit(a->grid, a->order, a->next, a->tiles), 0};
        for (uint32_t i = 0; i < left->tiles; i++)
            left->numbers += a->tiles[i];
        if (left->tiles == 0 && a->low == a->next)
            a->low++;
        a->whole += left->tiles == 0;
    }
}

/* NULL, or what is wrong with the tile. */
static const char *fault_of(struct pb_arrivals *a, const struct pb_tile *tile, struct pb_err *err)
{
    if (a->repeats && a->whole == a->units && begin_again(a, err) < 0)
        return "has come in a round that cannot begin";
    if (tile->unit < a->units)
        enter(a, tile->unit);
    if (tile->unit >= a->next || tile->unit < a->low)
        return "is not of a unit that is under way";
    struct unit_left *left = &a->left[tile->unit % a->size];
    if (left->tiles == 0)
        return "has arrived before";
    left->tiles--;
    left->numbers -= tile->number;
    if (left->tiles == 0 && left->numbers != 0)
        return "is not of its unit, or another one is not";
    if (pb_tile_exchange_permits(&a->walk, tile->unit, a->whole, err) != 1)
        return "has come before the pattern's step that sends it";
    if (a->counts_parts && pb_part_exchange_tile(&a->parts, tile->parts, NULL) < 0)
        return "has come without all of its parts";
    a->whole += left->tiles == 0;
    close_units(a);
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
