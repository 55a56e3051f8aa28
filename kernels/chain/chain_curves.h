/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_CURVES_H
#define PB_CHAIN_CURVES_H
/* The curves of a chain (pb_graph_match): their knots lie behind the instructions of each program
 * that takes them, so they go to a device with the code. */
#include "kernels/chain/chain_stage.h"
#include "kernels/graph/graph.h"

/* Reserves the knots of the curves that the program of a stage takes. 0, -ENOMEM. */
int pb_chain_curves_lay(struct pb_chain *chain, uint32_t stage);
/* Which reductions the curves of a whole chain come of; its passes have them. 0, -ENOMEM. */
int pb_chain_curves_define(const struct pb_graph *graph, struct pb_chain *chain);
void pb_chain_curves_fini(struct pb_chain *chain);
#endif
