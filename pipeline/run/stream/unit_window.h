/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_UNIT_WINDOW_H
#define PB_UNIT_WINDOW_H
/* The units of the visiting order that are under way, with how many of their tiles are left: what
 * either end of a pass's exchange of tiles counts (in_flight.h, arrivals.h), and its walk along the
 * schedule. Units may be over in any order. No lock: the user's. */
#include "pipeline/plan/tile_exchange.h"
#include "pipeline/grid/tile.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_unit_window {
    const struct pb_grid *grid;
    enum pb_order order;
    uint32_t units, size;
    uint32_t next; /* the first unit that was not begun */
    uint32_t low;  /* the first that is not over */
    uint32_t over; /* how many are, wherever they are in the order */
    struct pb_tile_exchange walk;
    uint32_t *tiles; /* of the unit that was begun last */
    uint32_t *left;  /* of unit u at u % size */
};

/* At most `size` units may be under way. grid: borrowed. Takes what *walk holds, also on failure.
 * -ENOMEM. */
int pb_unit_window_init(struct pb_unit_window *window, const struct pb_grid *grid,
                        enum pb_order order, uint32_t size, struct pb_tile_exchange *walk);
void pb_unit_window_fini(struct pb_unit_window *window); /* zeroed is fine */
/* All units anew. Takes what *walk holds. */
void pb_unit_window_again(struct pb_unit_window *window, struct pb_tile_exchange *walk);
bool pb_unit_window_is_full(const struct pb_unit_window *window);
/* Begins the next unit, for which there is room; one without tiles is over at once. Returns how
 * many it has, window->tiles. */
uint32_t pb_unit_window_begin(struct pb_unit_window *window);
/* A tile of a unit under way is over. True: and the unit with it. */
bool pb_unit_window_done(struct pb_unit_window *window, uint32_t unit);
#endif
