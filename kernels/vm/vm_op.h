/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VM_OP_H
#define PB_VM_OP_H

/* Operations on pixels that operators and expressions are made of. The list, with pixel functions,
 * is kernels/vm/vm_ops.def. */
enum pb_vm_op {
#define PB_VM_OP(name, arity) PB_VM_##name,
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
    PB_VM_COUNT
};

/* How many operands it has. */
static inline int pb_vm_arity(enum pb_vm_op op)
{
    static const signed char arity[PB_VM_COUNT] = {
#define PB_VM_OP(name, n) n,
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
    };
    return arity[op];
}
#endif
