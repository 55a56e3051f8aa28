/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PROGRAM_STEPS_H
#define PB_PROGRAM_STEPS_H
/* What the interpreter for CPUs does with each strip: the steps of a program, found once for a
 * sweep. Two things make them fewer and shorter than the instructions. What depends on the row
 * alone (the length of a degree, a number) has the same value in all pixels of a strip, is `even`:
 * it is computed for one pixel, and loops take it as an immediate. And a loop goes on with what the
 * next instructions make of its result where nothing else reads that: a product that is added to
 * something, a result that is stored. Pixels of planes are read where they lie, unless the sweep
 * stores in the same planes. Internal to kernels/vm/. */
#include "kernels/vm/program.h"
#include "kernels/vm/vm_loops.h"

/* Where one strip is, and its registers. */
struct pb_strip {
    const struct pb_sweep *sweep;
    float *registers;
    size_t stride; /* px from register to register */
    int32_t x, y;  /* image */
    size_t n;
    float even[PB_PROGRAM_REGISTERS_MAX];         /* the values of registers that are even */
    const float *plane[PB_PROGRAM_REGISTERS_MAX]; /* the pixels of those that stay in a plane */
};

static inline float *pb_strip_register(const struct pb_strip *s, uint8_t r)
{
    return s->registers + r * s->stride;
}

struct pb_strip_step;
typedef void pb_strip_run(struct pb_strip *s, const struct pb_strip_step *step);

struct pb_strip_step {
    pb_strip_run *run;
    pb_vm_loop *loop;             /* of an operation */
    const struct pb_instr *instr; /* the instruction; of an operation that is stored, the STORE */
    const float *imm[2];          /* where the immediates are; of one value, [0] */
    uint8_t dst, src[3];
    uint8_t planes; /* bit k: the pixels of src[k] stay in a plane */
};

static inline const float *pb_strip_source(const struct pb_strip *s,
                                           const struct pb_strip_step *step, int k)
{
    const uint8_t r = step->src[k];

    return step->planes >> k & 1 ? s->plane[r] : pb_strip_register(s, r);
}

/* How the other instructions are run, by code; of the second kind: what is read is even, or, of
 * PLANE, its pixels stay there. */
extern pb_strip_run *const pb_strip_others[PB_CODE_COUNT][2];

/* The steps of the sweep's program, at most as many as it has instructions; returns how many. They
 * refer to the strip. */
uint32_t pb_strip_plan(struct pb_strip *s, struct pb_strip_step *steps);

/* Where output plane `index` has the strip. */
float *pb_strip_output(const struct pb_strip *s, uint16_t index);
#endif
