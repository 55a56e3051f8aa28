/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_PLAN_H
#define PB_CHAIN_PLAN_H
/* From the finished graph to the stages of a chain. */
#include "kernels/chain/chain_stage.h"
#include "kernels/graph/graph.h"

/* Fills used inputs, stages, planes, halo and registers of a zeroed chain. 0; -ENOMEM; -E2BIG when
 * a program needs too many registers. Whatever was made is freed by pb_chain_destroy. */
int pb_chain_plan(const struct pb_graph *graph, const pb_value *outputs, size_t n_outputs,
                  const struct pb_chain_spec *spec, struct pb_chain *chain);
#endif
