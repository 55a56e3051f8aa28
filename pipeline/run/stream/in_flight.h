/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_IN_FLIGHT_H
#define PB_IN_FLIGHT_H
/* Both ends of the exchange of tiles in a pass (pipeline/plan/exchange.h): the one of readers and
 * writers, and the executor's (struct pb_arrivals).
 *
 * The first limits the units of the visiting order that are in flight: hands them out one after the
 * other and lets a few be unfinished at a time. This bounds the memory that products hold for the
 * tiles after a slow one. Readers take units and park while too many are in flight; writers report
 * tiles. One short lock per unit taken and per tile finished. Units follow the schedule of the
 * exchange. */
#include "pipeline/plan/exchange.h"
#include "pipeline/grid/tile.h"
#include "kernels/tile_slot.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_in_flight;

/* NULL = out of memory. units: units of the order; at most `size` may be unfinished at one time.
 * Takes the content of *walk, which must suit these units (pb_tile_exchange_init), also on failure.
 */
struct pb_in_flight *pb_in_flight_create(const struct pb_grid *grid, enum pb_order order,
                                         uint32_t size, struct pb_tile_exchange *walk);
void pb_in_flight_destroy(struct pb_in_flight *window);
/* Next unit; parks while the window is full or the schedule waits for results. 0; -EPIPE at the
 * end; -ECANCELED after abort; or the error of pb_tile_exchange_permits. Adds the time it
 * was parked to *parked_ns. Thread: reader. */
int pb_in_flight_take(struct pb_in_flight *window, uint32_t *out_unit, uint64_t *parked_ns);
/* Next tile; like pb_in_flight_take, for several threads that share a unit. Its tiles are handed
 * out in the visiting order. A stream uses only one of the two functions. Thread: tile worker. */
int pb_in_flight_take_tile(struct pb_in_flight *window, uint32_t *out_unit, uint32_t *out_number,
                           uint64_t *parked_ns);
/* Next tile, without parking: 1, or 0 when no tile may be handed out now. */
int pb_in_flight_try_tile(struct pb_in_flight *window, uint32_t *out_unit, uint32_t *out_number);
/* A tile of `unit` has passed through every product. Thread: writer. */
void pb_in_flight_done(struct pb_in_flight *window, uint32_t unit);
/* Sets if the units may be repeated (pb_in_flight_again): readers park after the last one
 * then. Initially false. Thread: any. */
void pb_in_flight_open(struct pb_in_flight *window, bool open);
/* Waits until all units have finished. 0, -ETIMEDOUT, or -ECANCELED after abort; timeout_ms < 0 =
 * no limit. Thread: one that neither reads nor writes. */
int pb_in_flight_wait(struct pb_in_flight *window, int64_t timeout_ms);
/* Starts the units again after all have finished. Takes the content of *walk, like create. Thread:
 * as for wait. */
void pb_in_flight_again(struct pb_in_flight *window, struct pb_tile_exchange *walk);
/* Call it when no more tiles will finish; aborts if another round was expected. Thread:
 * writer. */
void pb_in_flight_ended(struct pb_in_flight *window);
void pb_in_flight_abort(struct pb_in_flight *window); /* NULL is fine */

/* Executor's end of the exchanges of a pass: walks the same schedules as the readers (here,
 * reader.c) and checks arrivals against them: tiles of units that may be sent down now and are
 * within the window, each once, with the parts that the pattern sends. One short lock per tile. */
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
