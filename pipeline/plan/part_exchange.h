/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PART_EXCHANGE_H
#define PB_PART_EXCHANGE_H
/* One end's walk along the exchange of the parts of tiles, tile after tile. D0 is what reads, D1
 * what decides and computes. A chunk down is a part: what the gate looks at, where there is one;
 * then what is read of each file. A chunk up is the tile's result. The pattern decides which of
 * them is next; what is told with parts is the step that the data asks for, as the pattern
 * `probabilistic` takes it: 2 * chunks + direction, direction 0 down and 1 up. Thread: one at a
 * time. */
#include "config/base/err.h"
#include "config/exchange.h"
#include "wic/pattern/schedule.h"

#include <stdint.h>

struct pb_part_exchange {
    struct wic_schedule schedule; /* pattern NULL: all parts, then the result */
    uint32_t parts;               /* that a tile has */
    uint32_t sent;                /* of the tile at hand */
    uint64_t left;                /* of the step under way */
};

/* exchange: of tiles or of their parts; the parts of one of tiles go down one after the other.
 * part_bytes: the largest. Borrows nothing. Fills *err and returns a negative errno where the
 * pattern cannot do that. */
int pb_part_exchange_init(struct pb_part_exchange *walk, const struct pb_exchange_config *exchange,
                          uint32_t parts, uint64_t part_bytes, struct pb_err *err);
/* Zeroed is fine. */
void pb_part_exchange_fini(struct pb_part_exchange *walk);
/* What is next, when what came before is done. enough: the tile at hand needs no more parts. 1: the
 * part *out_part of the tile; 0: its result, and then the next tile; or a negative errno with *err
 * filled: the pattern yields what is no good here. */
int pb_part_exchange_next(struct pb_part_exchange *walk, bool enough, uint32_t *out_part,
                          struct pb_err *err);
/* Walks past a tile of which so many parts came: 0; or a negative errno: that is not what the
 * pattern says. */
int pb_part_exchange_tile(struct pb_part_exchange *walk, uint32_t parts, struct pb_err *err);
/* Walks a fresh walk through one tile of each kind and frees it: whether the pattern goes with
 * tiles of so many parts. has_gate: of some the first part is enough. */
int pb_part_exchange_check(struct pb_part_exchange *walk, bool has_gate, struct pb_err *err);
#endif
