/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INSTR_H
#define PB_INSTR_H
/* Which registers an instruction reads and writes. */
#include "kernels/vm/program.h"
#include "kernels/vm/vm_op.h"

/* How many operands an instruction has. */
static inline int pb_instr_operands(const struct pb_instr *instr)
{
    if (instr->code < PB_CODE_CONST)
        return pb_vm_arity((enum pb_vm_op)instr->code);
    return instr->code == PB_CODE_CURVE || instr->code == PB_CODE_STORE;
}

/* Whether operand k is that register. */
static inline bool pb_instr_reads(const struct pb_instr *instr, int k, uint8_t reg)
{
    return k < pb_instr_operands(instr) && !(instr->imm_mask >> k & 1) && instr->src[k] == reg;
}

static inline bool pb_instr_has_result(const struct pb_instr *instr)
{
    return instr->code != PB_CODE_STORE;
}
#endif
