/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_EXCHANGE_H
#define PB_TILE_EXCHANGE_H
/* One end's walk along the schedule of a pass. D0 are the readers and writers, D1 is the executor;
 * a chunk is a unit of the visiting order, so the pattern decides which units may be read when.
 * Down go all units. Where the pattern has a way up, their results are counted by it, and what goes
 * down after a step up waits for these results; where it has none, results come up as they are
 * made. Products need units in the visiting order, so a pattern that takes them otherwise is
 * refused. Both ends walk the same schedule. Thread: one at a time. */
#include "config/base/err.h"
#include "config/exchange.h"
#include "wic/pattern/schedule.h"

#include <stdint.h>

struct pb_tile_exchange {
    struct wic_schedule schedule;
    uint32_t units;
    uint64_t sent;    /* the units before this one may go down, */
    uint64_t results; /* once the results of so many units are there */
};

/* exchange->pattern NULL, or of parts: unidirectional. units: of the visiting order; window: that
 * may be unfinished at a time; unit_bytes: of the largest. Borrows nothing. Fills *err and returns
 * a negative errno where the pattern does not go with such a pass. */
int pb_tile_exchange_init(struct pb_tile_exchange *walk, const struct pb_exchange_config *exchange,
                          uint32_t units, uint32_t window, uint64_t unit_bytes, struct pb_err *err);
void pb_tile_exchange_fini(struct pb_tile_exchange *walk);
/* Whether a unit may go down when the results of `back` units are there: 1, 0 = not yet, or a
 * negative errno, with *err filled: the pattern yields what is no good here. */
int pb_tile_exchange_permits(struct pb_tile_exchange *walk, uint32_t unit, uint64_t back,
                             struct pb_err *err);
/* Walks a fresh walk to its end and frees it: whether the pattern goes with such a pass. */
int pb_tile_exchange_check(struct pb_tile_exchange *walk, struct pb_err *err);
#endif
