/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REDUCING_H
#define PB_REDUCING_H
/* Reductions of an earlier pass, as the sink of its tiles: a set of states for each writer, and
 * one set into which they are merged. */
#include "pipeline/plan/plan.h"
#include "pipeline/run/base/sink.h"
#include "config/exchange.h"

struct pb_reducing;
struct pb_step_config;

/* plan: the pass whose outputs are reduced, after the passes before it; steps: the steps of
 * the pipeline, whose exchanges the rounds of loops follow. Both are borrowed until destroy. */
int pb_reducing_create(const struct pb_plan *plan, const struct pb_step_config *steps,
                       struct pb_err *err, struct pb_reducing **out_reducing);
/* Takes every tile of a round once. Thread: any, each worker number one at a time. */
struct pb_sink pb_reducing_sink(struct pb_reducing *reducing);
/* Call it after a round, with no pass running, from one thread. *out_all: true if all results are
 * known and set in `whole`; else the pass must run again, and the numbers of its loops are set. */
int pb_reducing_end(struct pb_reducing *reducing, struct pb_chain *whole, bool *out_all,
                    struct pb_err *err);
/* State of reduction i in this round for a device that computes it (pb_plan_out_reduces); sinks add
 * nothing to it then. NULL: it takes no part in the round. Thread: one at a time, until the
 * round ends. */
void *pb_reducing_device_state(struct pb_reducing *reducing, size_t i);
void pb_reducing_destroy(struct pb_reducing *reducing); /* NULL is fine */

/* Rounds of a loop of reductions as an exchange of two parties, in the order of a communication
 * pattern (wic/pattern/pattern.h): a chunk down is the loop's numbers, a chunk up is the result of
 * the pixels that were made with them, and reports how many numbers change for the next round. The
 * pattern decides whether there is a next round. One thread. */
struct pb_rounds;

/* Begins the first round. bytes: size of a loop's numbers. */
int pb_rounds_create(const struct pb_exchange_config *exchange, size_t bytes, struct pb_err *err,
                     struct pb_rounds **out_rounds);
/* Ends a round in which `others` numbers change. *out_more: true if the next round begins. */
int pb_rounds_next(struct pb_rounds *rounds, uint32_t others, bool *out_more, struct pb_err *err);
void pb_rounds_destroy(struct pb_rounds *rounds); /* NULL is fine */
#endif
