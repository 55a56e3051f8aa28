/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GATE_ARGS_H
#define PB_GATE_ARGS_H
/* What operators share whose condition decides which tiles are decoded further. */
#include "kernels/op.h"

/* What the condition reads of a tile goes down; the value told with it says whether the rest
 * follows, file by file, or the result is there. */
void pb_gate_args_exchange(struct pb_op_exchange *out);
#endif
