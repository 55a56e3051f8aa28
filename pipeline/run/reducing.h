/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REDUCING_H
#define PB_REDUCING_H
/* The reductions of an earlier pass, as the sink of its tiles: a set of states for each writer, and
 * one that they are merged into. */
#include "kernels/chain/chain.h"
#include "pipeline/run/sink.h"

struct pb_reducing;

/* pass: the chain whose outputs are reduced, the passes before it being complete; borrowed until
 * destroy. */
int pb_reducing_create(struct pb_chain *pass, uint32_t workers, struct pb_err *err,
                       struct pb_reducing **out_reducing);
/* Takes every tile of a round once. Thread: any, each worker number one at a time. */
struct pb_sink pb_reducing_sink(struct pb_reducing *reducing);
/* After a round. True: all results are known and set in `whole`. False: the pass is to be run
 * once more; the numbers of its loops are set for that. One thread, with no pass running. */
bool pb_reducing_end(struct pb_reducing *reducing, struct pb_chain *whole);
void pb_reducing_destroy(struct pb_reducing *reducing); /* NULL is fine */
#endif
