/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/gate_args.h"

void pb_gate_args_exchange(struct pb_op_exchange *out)
{
    static const char *const names[] = {"n0", "n1", "by_data"};

    out->pattern = "probabilistic";
    out->of = PB_EXCHANGE_PARTS;
    out->by_data = true;
    for (; out->n_args < sizeof names / sizeof names[0]; out->n_args++) {
        out->arg[out->n_args].name = names[out->n_args];
        out->arg[out->n_args].value = 1;
    }
}
