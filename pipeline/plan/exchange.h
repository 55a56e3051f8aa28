/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_EXCHANGE_H
#define PB_PLAN_EXCHANGE_H
/* Walks along the exchanges of a pass: of tiles between its ends, and of the parts of a tile
 * between a reader and its files. */
#include "config/base/err.h"
#include "config/exchange.h"
#include "pipeline/plan/plan.h"
#include "wic/pattern/schedule.h"

#include <stdint.h>

/* One end's walk along the schedule of a pass. D0 are the readers and writers, D1 is the executor;
 * a chunk is a unit of the visiting order, therefore the pattern decides when a unit may be read.
 * All units are sent down. If the pattern has steps up, they count results, and units
 * after a step up wait for these results; without steps up, results are sent as they are
 * made. Products need units in the visiting order, therefore a pattern with another order is
 * refused. Both ends walk the same schedule. Thread: one at a time. */
struct pb_tile_exchange {
    struct wic_schedule schedule;
    uint32_t units;
    uint64_t sent;    /* units with a lower number may be sent down, */
    uint64_t results; /* ... once the results of that many units have arrived */
};

/* exchange->pattern NULL, or for parts: unidirectional. units: count in the visiting order; window:
 * units that may be unfinished at a time; unit_bytes: size of the largest. Borrows nothing. Fills
 * *err and returns a negative errno if the pattern does not suit such a pass. */
int pb_tile_exchange_init(struct pb_tile_exchange *walk, const struct pb_exchange_config *exchange,
                          uint32_t units, uint32_t window, uint64_t unit_bytes, struct pb_err *err);
void pb_tile_exchange_fini(struct pb_tile_exchange *walk);
/* Returns 1 if a unit may be sent down when the results of `back` units have arrived, 0 = not yet,
 * or a negative errno, with *err filled: the pattern yields an invalid step. */
int pb_tile_exchange_permits(struct pb_tile_exchange *walk, uint32_t unit, uint64_t back,
                             struct pb_err *err);
/* Runs a fresh walk to its end and frees it: checks if the pattern suits such a pass. */
int pb_tile_exchange_check(struct pb_tile_exchange *walk, struct pb_err *err);

/* One end's walk along the exchange of the parts of tiles, tile after tile. D0 is the reader, D1 is
 * the gate and executor. A chunk down is a part: first the gate's bands if there is a gate;
 * then the bands of each file. A chunk up is the tile's result. The pattern decides which of
 * them is next. Each part reports the next step, (2 * chunks + direction, direction 0 down and 1
 * up), as the pattern `probabilistic` expects it. Thread: one at a time. */
struct pb_part_exchange {
    struct wic_schedule schedule; /* pattern NULL: all parts, then the result */
    uint32_t parts;               /* count of the parts of a tile */
    uint32_t sent;                /* parts of the current tile that were sent */
    uint64_t left;                /* chunks of the current step that remain */
};

/* exchange: for tiles or for their parts; with one for tiles the parts are sent down one after the
 * other. part_bytes: size of the largest. Borrows nothing. Fills *err and returns a negative errno
 * if the pattern cannot do that. */
int pb_part_exchange_init(struct pb_part_exchange *walk, const struct pb_exchange_config *exchange,
                          uint32_t parts, uint64_t part_bytes, struct pb_err *err);
/* Zeroed is fine. */
void pb_part_exchange_fini(struct pb_part_exchange *walk);
/* Next action, after the one before is done. enough: the current tile needs no more parts. 1: send
 * the part *out_part of the tile; 0: its result, and then the next tile; or a negative errno with
 * *err filled: the pattern yields an invalid step. */
int pb_part_exchange_next(struct pb_part_exchange *walk, bool enough, uint32_t *out_part,
                          struct pb_err *err);
/* Walks past a tile of which `parts` parts arrived: 0; or a negative errno if that contradicts the
 * pattern. */
int pb_part_exchange_tile(struct pb_part_exchange *walk, uint32_t parts, struct pb_err *err);
/* Runs a fresh walk through one tile of each kind and frees it: checks if the pattern suits
 * tiles of that many parts. has_gate: for some tiles the first part is enough. */
int pb_part_exchange_check(struct pb_part_exchange *walk, bool has_gate, struct pb_err *err);

/* Bytes of the largest unit of the visiting order. */
uint64_t pb_plan_unit_bytes(const struct pb_plan *plan);
/* Begins one end's walk along the pass's exchange; the caller must
 * end it. */
int pb_plan_exchange(const struct pb_plan *plan, struct pb_err *err,
                     struct pb_tile_exchange *out_walk);
/* Same for the parts of tiles, for one reader. */
int pb_plan_part_exchange(const struct pb_plan *plan, struct pb_err *err,
                          struct pb_part_exchange *out_walk);
/* Count of the parts of each tile: the gate's bands if there is a gate, then each source. */
uint32_t pb_plan_tile_parts(const struct pb_plan *plan);
#endif
