/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VM_LOOPS_H
#define PB_VM_LOOPS_H
/* The inner loops of the CPU interpreter: one operation over one strip of pixels. Tables of
 * functions, each compiled for several instruction sets (PB_CLONES). Output may be the same array
 * as an operand. Any thread. */
#include "kernels/vm/program.h"
#include "kernels/vm/vm_op.h"

struct pb_vm_strip {
    float *out;
    const float *src[3]; /* NULL where the operand is an immediate */
    const float *imm;    /* of the instruction */
    size_t n;
};

/* By operation and imm_mask; NULL for a mask that the operation does not take. */
typedef void pb_vm_loop(const struct pb_vm_strip *strip);
extern pb_vm_loop *const pb_vm_loops[PB_VM_COUNT][8];
/* The same with the result as it is stored, finite or NaN; NULL of operations that have none. */
extern pb_vm_loop *const pb_vm_stores[PB_VM_COUNT][8];
/* MUL of operands 0 and 1, then ADD of the product and operand 2; [1]: as it is stored. By the
 * imm_mask of a ternary operation. */
extern pb_vm_loop *const pb_vm_product_sums[2][8];

/* By type: n samples at src become float32. */
typedef void pb_vm_load(const struct pb_program_input *input, const void *src, float *out,
                        size_t n);
extern pb_vm_load *const pb_vm_loads[PB_TYPE_COUNT];

/* Pixels whose mask is 0 become invalid. */
void pb_vm_mask(const uint8_t *mask, float *out, size_t n);
/* Finite or NaN. */
void pb_vm_store(const float *src, float *out, size_t n);
void pb_vm_fill(float value, float *out, size_t n);
/* n pixels along the curve of so many knots, x and y in turn, as pb_curve_at has it. */
void pb_vm_curve(const float *knots, int32_t n_knots, const float *x, float *out, size_t n);
/* first, first + 1, ... */
void pb_vm_count(int32_t first, float *out, size_t n);
#endif
