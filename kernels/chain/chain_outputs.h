/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_OUTPUTS_H
#define PB_CHAIN_OUTPUTS_H
/* What products want to know of the values they store. Internal to chain/. */
#include "kernels/chain/chain_stage.h"
#include "kernels/graph/builder_state.h"

/* Fills classes, origins, places, untouched, computed, meanings and notes of the chain. values: of
 * the outputs. 0 or -ENOMEM. */
int pb_chain_describe_outputs(struct pb_builder *b, const pb_value *values,
                              const struct pb_chain_spec *spec, struct pb_chain *chain);
#endif
