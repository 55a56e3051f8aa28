/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/unit_window.h"

#include <errno.h>
#include <stdlib.h>

int pb_unit_window_init(struct pb_unit_window *w, const struct pb_grid *grid, enum pb_order order,
                        uint32_t size, struct pb_tile_exchange *walk)
{
    *w = (struct pb_unit_window){.grid = grid,
                                 .order = order,
                                 .units = pb_order_units(grid, order),
                                 .size = size,
                                 .walk = *walk,
                                 .tiles = calloc(pb_order_unit_max(grid, order), sizeof *w->tiles),
                                 .left = calloc(size, sizeof *w->left)};
    if (w->tiles != NULL && w->left != NULL)
        return 0;
    pb_unit_window_fini(w);
    return -ENOMEM;
}

void pb_unit_window_fini(struct pb_unit_window *w)
{
    pb_tile_exchange_fini(&w->walk);
    free(w->tiles);
    free(w->left);
    *w = (struct pb_unit_window){0};
}

void pb_unit_window_again(struct pb_unit_window *w, struct pb_tile_exchange *walk)
{
    pb_tile_exchange_fini(&w->walk);
    w->walk = *walk;
    w->next = w->low = w->over = 0;
}

bool pb_unit_window_is_full(const struct pb_unit_window *w)
{
    return w->next - w->low >= w->size;
}

static void unit_over(struct pb_unit_window *w)
{
    w->over++;
    while (w->low < w->next && w->left[w->low % w->size] == 0)
        w->low++;
}

uint32_t pb_unit_window_begin(struct pb_unit_window *w)
{
    uint32_t n = pb_order_unit(w->grid, w->order, w->next, w->tiles);
    w->left[w->next++ % w->size] = n;
    if (n == 0)
        unit_over(w);
    return n;
}

bool pb_unit_window_done(struct pb_unit_window *w, uint32_t unit)
{
    if (--w->left[unit % w->size] > 0)
        return false;
    unit_over(w);
    return true;
}
