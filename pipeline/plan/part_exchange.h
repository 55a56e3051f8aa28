/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PART_EXCHANGE_H
#define PB_PART_EXCHANGE_H
/* One end's walk along the exchange of the parts of tiles, tile after tile. D0 is the reader, D1 is
 * the gate and executor. A chunk down is a part: first the gate's bands if there is a gate;
 * then the bands of each file. A chunk up is the tile's result. The pattern decides which of
 * them is next. Each part reports the next step, (2 * chunks + direction, direction 0 down and 1
 * up), as the pattern `probabilistic` expects it. Thread: one at a time. */
#include "config/base/err.h"
#include "config/exchange.h"
#include "wic/pattern/schedule.h"

#include <stdint.h>

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
#endif
