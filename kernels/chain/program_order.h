/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PROGRAM_ORDER_H
#define PB_PROGRAM_ORDER_H
/* In which order a program computes: the first pass of kernels/chain/program_compile.h. */
#include "kernels/chain/program_compile.h"

struct pb_step {
    pb_value node;
    int32_t store; /* output plane that takes the value of node, or -1: compute node */
};

/* Constants, inputs, planes and views of them: loaded where they are used, no steps of their own.
 */
bool pb_node_is_leaf(const struct pb_node *node);
/* 0 or -ENOMEM. *out_steps is for the caller to free. */
int pb_program_order(const struct pb_program_spec *spec, struct pb_step **out_steps,
                     size_t *out_n_steps);
#endif
