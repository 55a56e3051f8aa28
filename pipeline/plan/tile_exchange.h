/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_EXCHANGE_H
#define PB_TILE_EXCHANGE_H
/* One end's walk along the schedule of a pass. D0 are the readers and writers, D1 is the executor;
 * a chunk is a unit of the visiting order, therefore the pattern decides when a unit may be read.
 * All units are sent down. If the pattern has steps up, they count results, and units
 * after a step up wait for these results; without steps up, results are sent as they are
 * made. Products need units in the visiting order, therefore a pattern with another order is
 * refused. Both ends walk the same schedule. Thread: one at a time. */
#include "config/base/err.h"
#include "config/exchange.h"
#include "wic/pattern/schedule.h"

#include <stdint.h>

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
#endif
