/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/vm/program_marks.h"
#include "kernels/vm/instr.h"

/* Whether an instruction reads the result of code[i] from its register. The one behind it has the
 * result at hand, as operand 0 or 1. */
static bool is_register_read(const struct pb_instr *code, uint32_t n, uint32_t i)
{
    const uint8_t reg = code[i].dst;

    for (uint32_t j = i + 1; j < n; j++) {
        for (int k = j == i + 1 ? 2 : 0; k < 3; k++)
            if (pb_instr_reads(&code[j], k, reg))
                return true;
        if (pb_instr_has_result(&code[j]) && code[j].dst == reg)
            return false;
    }
    return false;
}

static bool is_pair(const struct pb_instr *code, uint32_t n, uint32_t i,
                    const struct pb_program_input *inputs)
{
    return i + 1 < n && code[i].code == PB_CODE_INPUT && code[i + 1].code == PB_CODE_INPUT &&
           inputs[code[i].index].type == inputs[code[i + 1].index].type;
}

void pb_program_mark(struct pb_instr *code, uint32_t n, const struct pb_program_input *inputs)
{
    for (uint32_t i = 0; i < n; i++) {
        struct pb_instr *const instr = &code[i];
        const struct pb_instr *const before =
            i > 0 && pb_instr_has_result(instr - 1) ? instr - 1 : NULL;
        unsigned marks = 0;

        if (before && pb_instr_reads(instr, 0, before->dst))
            marks |= PB_MARK_X;
        if (before && pb_instr_reads(instr, 1, before->dst))
            marks |= PB_MARK_Y;
        if (pb_instr_has_result(instr) && !is_register_read(code, n, i))
            marks |= PB_MARK_LOCAL;
        if (is_pair(code, n, i, inputs) && !(before && before->imm_mask & PB_MARK_PAIR))
            marks |= PB_MARK_PAIR;
        instr->imm_mask = (uint8_t)(instr->imm_mask | marks);
    }
}
