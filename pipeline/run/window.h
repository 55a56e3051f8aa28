/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WINDOW_H
#define PB_WINDOW_H
/* Hands out the units of the visiting order and keeps the unfinished ones within a window, so that
 * what products hold back for a slow tile stays bounded. Readers take units and park while the
 * window is full; writers report tiles. One short lock per unit taken and per tile finished. */
#include "pipeline/grid/tile.h"

#include <stdint.h>

struct pb_window;

/* NULL = out of memory. units: of the order; at most `size` may be unfinished at one time. */
struct pb_window *pb_window_create(const struct pb_grid *grid, enum pb_order order, uint32_t size);
void pb_window_destroy(struct pb_window *window);
/* Next unit; parks while the window is full. 0; -EPIPE when there are no more; -ECANCELED after
 * abort. Adds the time it was parked to *parked_ns. Thread: reader. */
int pb_window_take(struct pb_window *window, uint32_t *out_unit, uint64_t *parked_ns);
/* A tile of `unit` is through every product. Thread: writer. */
void pb_window_done(struct pb_window *window, uint32_t unit);
void pb_window_abort(struct pb_window *window);
#endif
