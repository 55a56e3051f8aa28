/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ARRIVALS_H
#define PB_ARRIVALS_H
/* Executor's end of the exchanges of a pass: walks the same schedules as the readers
 * (pipeline/run/stream/in_flight.h, reader.c) and checks arrivals against them: tiles
 * of units that may be sent down now and are within the window, each once, with the parts that the
 * pattern sends. One short lock per tile. */
#include "pipeline/plan/exchange.h"
#include "pipeline/grid/tile.h"
#include "kernels/tile_slot.h"

struct pb_arrivals;

/* Same contract as pb_in_flight_create; also takes the content of *parts. parts NULL: parts are not
 * counted, because the readers are in another process. */
struct pb_arrivals *pb_arrivals_create(const struct pb_grid *grid, enum pb_order order,
                                       uint32_t size, struct pb_tile_exchange *walk,
                                       struct pb_part_exchange *parts);
/* NULL is fine. */
void pb_arrivals_destroy(struct pb_arrivals *arrivals);
/* Call it before the first tile: when all units have arrived they may begin again, any number of
 * times, by a walk of this exchange and unit size (pb_tile_exchange_init). */
void pb_arrivals_repeat(struct pb_arrivals *arrivals, const struct pb_exchange_config *exchange,
                        uint64_t unit_bytes);
/* Records that a tile has arrived, or that its reader leaves it out; call it before the in-flight
 * limiter counts the tile. 0, or a negative errno with *err filled: the tile is out of order.
 * arrivals NULL: no check, for an executor without readers. Thread: any. */
int pb_arrivals_note(struct pb_arrivals *arrivals, const struct pb_tile *tile, struct pb_err *err);
#endif
