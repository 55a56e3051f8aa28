/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_UNIT_WINDOW_H
#define PB_UNIT_WINDOW_H
/* Units of the visiting order that are in progress, with the count of their unfinished tiles, and a
 * walk along the schedule. Used by both ends of a pass's exchange of tiles (in_flight.h,
 * arrivals.h). Units may finish in any order. No lock: the user's. */
#include "pipeline/plan/exchange.h"
#include "pipeline/grid/tile.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_unit_window {
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

/* At most `size` units may be in progress. grid: borrowed. Takes the content of *walk, also on
 * failure. -ENOMEM. */
int pb_unit_window_init(struct pb_unit_window *window, const struct pb_grid *grid,
                        enum pb_order order, uint32_t size, struct pb_tile_exchange *walk);
void pb_unit_window_fini(struct pb_unit_window *window); /* zeroed is fine */
/* Starts all units again. Takes the content of *walk. */
void pb_unit_window_again(struct pb_unit_window *window, struct pb_tile_exchange *walk);
bool pb_unit_window_is_full(const struct pb_unit_window *window);
/* Begins the next unit; the window must not be full. A unit without tiles finishes at once. Returns
 * the count of its tiles; they are in window->tiles. */
uint32_t pb_unit_window_begin(struct pb_unit_window *window);
/* Counts a finished tile of a unit in progress. Returns true if the unit has finished with it. */
bool pb_unit_window_done(struct pb_unit_window *window, uint32_t unit);
#endif
