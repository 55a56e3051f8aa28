/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_OUTPUTS_H
#define PB_CHAIN_OUTPUTS_H
/* What products want to know of the values they store. Internal to chain/. */
#include "kernels/chain/chain_stage.h"
#include "kernels/graph/graph.h"

/* Fills classes, origins, places, untouched and computed of the chain. values: of the outputs. 0 or
 * -ENOMEM. */
int pb_chain_describe_outputs(const struct pb_graph *graph, const pb_value *values,
                              const struct pb_chain_spec *spec, struct pb_chain *chain);
#endif
