/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PROGRAM_MARKS_H
#define PB_PROGRAM_MARKS_H
/* The marks of a program for GPUs. There the machine's registers are in shared memory, whose
 * bandwidth limits what a multiprocessor interprets; a thread keeps the last result at hand. */
#include "kernels/vm/program.h"

#ifdef __cplusplus
extern "C" {
#endif
/* Sets the marks of n instructions that have none; inputs: of the program. */
void pb_program_mark(struct pb_instr *code, uint32_t n, const struct pb_program_input *inputs);
#ifdef __cplusplus
}
#endif
#endif
