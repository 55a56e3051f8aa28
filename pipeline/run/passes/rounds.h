/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ROUNDS_H
#define PB_ROUNDS_H
/* Rounds of a loop of reductions as an exchange of two parties, in the order of a communication
 * pattern (wic/pattern/pattern.h): a chunk down is the loop's numbers, a chunk up is the result of
 * the pixels that were made with them, and reports how many numbers change for the next round. The
 * pattern decides whether there is a next round. One thread. */
#include "config/base/err.h"
#include "config/exchange.h"

#include <stdbool.h>

struct pb_rounds;

/* Begins the first round. bytes: size of a loop's numbers. */
int pb_rounds_create(const struct pb_exchange_config *exchange, size_t bytes, struct pb_err *err,
                     struct pb_rounds **out_rounds);
/* Ends a round in which `others` numbers change. *out_more: true if the next round begins. */
int pb_rounds_next(struct pb_rounds *rounds, uint32_t others, bool *out_more, struct pb_err *err);
void pb_rounds_destroy(struct pb_rounds *rounds); /* NULL is fine */
#endif
