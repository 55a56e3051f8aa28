/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_NUMBERS_H
#define PB_CHAIN_NUMBERS_H
/* The numbers of a chain that are known only when earlier passes have been run, and where they
 * stand in its programs. */
#include "kernels/chain/chain_stage.h"
#include "kernels/chain/program_compile.h"

/* Takes the patches of a stage's program over. 0 or -ENOMEM. */
int pb_chain_numbers_add(const struct pb_graph *graph, struct pb_chain *chain, uint32_t stage,
                         const struct pb_patch *patches, size_t n);
/* Computes the numbers of one pass again after results of reduction `number` are known, and writes
 * them into its programs. */
void pb_chain_numbers_set(struct pb_chain *pass, uint32_t number, const double *results,
                          uint32_t n);
/* The first n of a loop's numbers, as they are in the first round or as they were set. */
void pb_chain_numbers_of_loop(const struct pb_chain *pass, uint32_t loop, float *out, uint32_t n);
/* Sets them for another round. They stay until results are set. */
void pb_chain_numbers_again(struct pb_chain *pass, uint32_t loop, const float *numbers, uint32_t n);
#endif
