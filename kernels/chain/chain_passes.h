/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_PASSES_H
#define PB_CHAIN_PASSES_H
/* Which reductions the outputs need, and the passes that make them. */
#include "kernels/chain/chain_gate.h"

/* Makes chain->earlier for the reductions that the outputs depend on: one pass for all of one level
 * and one grid. 0; -ENOMEM; -E2BIG as pb_chain_plan. */
int pb_chain_passes(const struct pb_graph *graph, const pb_value *outputs,
                    const struct pb_chain_spec *spec, const struct pb_chain_gating *gating,
                    struct pb_chain *chain);
#endif
