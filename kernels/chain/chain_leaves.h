/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_LEAVES_H
#define PB_CHAIN_LEAVES_H
/* What the loads of a chain's programs refer to: bands, and where their pixels lie. */
#include "kernels/chain/chain_stage.h"

/* How a program loads a band; plane: in the window of its source. */
struct pb_program_input pb_program_input_of(const struct pb_chain_input *input, uint16_t plane);
/* The number of a place among the chain's, new or known: pb_instr.src[0]. -ENOMEM, -E2BIG. Padding
 * bytes of *place are zero. */
int pb_chain_place(struct pb_chain *chain, const struct pb_leaf_place *place);
#endif
