/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * From instructions to steps. Which registers are even follows from the code alone: the row's
 * number and numbers are, an operation is where all of its operands are. */
#include "kernels/vm/program_steps.h"
#include "kernels/vm/instr.h"

#include <assert.h>

#define AHEAD 8 /* instructions among which the next use of a register is looked for */

struct planner {
    struct pb_strip *strip;
    const struct pb_instr *end;
    bool is_even[PB_PROGRAM_REGISTERS_MAX], is_plane[PB_PROGRAM_REGISTERS_MAX];
    bool in_place; /* the sweep stores in planes that it reads */
};

/* --- how operations are run ------------------------------------------------------------------ */

static void run_loop_into(const struct pb_strip *s, const struct pb_strip_step *step, float *out)
{
    const float imm[2] = {*step->imm[0], *step->imm[1]};
    const struct pb_vm_strip strip = {.out = out,
                                      .src = {pb_strip_source(s, step, 0),
                                              pb_strip_source(s, step, 1),
                                              pb_strip_source(s, step, 2)},
                                      .imm = imm,
                                      .n = s->n};

    step->loop(&strip);
}

static void run_loop(struct pb_strip *s, const struct pb_strip_step *step)
{
    run_loop_into(s, step, pb_strip_register(s, step->dst));
}

static void run_stored(struct pb_strip *s, const struct pb_strip_step *step)
{
    run_loop_into(s, step, pb_strip_output(s, step->instr->index));
}

static void fill_first(const struct pb_strip *s, const struct pb_strip_step *step)
{
    pb_vm_fill(s->even[step->src[0]], pb_strip_register(s, step->src[0]), s->n);
}

static void run_filled(struct pb_strip *s, const struct pb_strip_step *step)
{
    fill_first(s, step);
    run_loop(s, step);
}

static void run_filled_stored(struct pb_strip *s, const struct pb_strip_step *step)
{
    fill_first(s, step);
    run_stored(s, step);
}

static void run_one(struct pb_strip *s, const struct pb_strip_step *step)
{
    const struct pb_vm_strip strip = {
        .out = &s->even[step->dst],
        .src = {&s->even[step->src[0]], &s->even[step->src[1]], &s->even[step->src[2]]},
        .imm = step->instr->imm,
        .n = 1};

    step->loop(&strip);
}

/* --- operands -------------------------------------------------------------------------------- */

static bool is_number(const struct pb_instr *instr, int k)
{
    return instr->imm_mask >> k & 1;
}

static bool has_even_operands(const struct planner *p, const struct pb_instr *instr)
{
    for (int k = 0; k < pb_instr_operands(instr); k++)
        if (!is_number(instr, k) && !p->is_even[instr->src[k]])
            return false;
    return true;
}

/* Even operands of an operation that has others, too: immediates where it takes them. Returns the
 * mask of its loop; an even operand 0 of a ternary operation is left, to be filled. */
static unsigned find_immediates(const struct planner *p, const struct pb_instr *instr,
                                struct pb_strip_step *step)
{
    unsigned mask = instr->imm_mask;

    for (int k = 0; k < pb_instr_operands(instr); k++) {
        const uint8_t r = instr->src[k];

        if (is_number(instr, k) || !p->is_even[r] ||
            pb_vm_loops[instr->code][mask | 1u << k] == NULL)
            continue;
        step->imm[k == 2] = &p->strip->even[r];
        mask |= 1u << k;
    }
    return mask;
}

/* Whether nothing reads a register from `instr` on before it is written; false, too, where that is
 * not seen soon. */
static bool is_over(const struct planner *p, const struct pb_instr *instr, uint8_t r)
{
    for (int i = 0; i < AHEAD && instr < p->end; i++, instr++) {
        for (int k = 0; k < 3; k++)
            if (pb_instr_reads(instr, k, r))
                return false;
        if (pb_instr_has_result(instr) && instr->dst == r)
            return true;
    }
    return instr == p->end;
}

static uint8_t find_planes(const struct planner *p, const struct pb_strip_step *step)
{
    unsigned planes = 0;

    for (int k = 0; k < 3; k++)
        planes |= (unsigned)p->is_plane[step->src[k]] << k;
    return (uint8_t)planes;
}

static void set_result(struct planner *p, uint8_t r, bool is_even, bool is_plane)
{
    p->is_even[r] = is_even;
    p->is_plane[r] = is_plane;
}

/* --- operations that share a loop ------------------------------------------------------------ */

/* Whether the instruction after a product adds something else to it, and is the only one that reads
 * it. Then step and mask, those of the product, become those of both. */
static bool add_to_product(const struct planner *p, const struct pb_instr *product,
                           struct pb_strip_step *step, unsigned *mask)
{
    const struct pb_instr *const sum = product + 1;

    if (product->code != PB_CODE_MUL || sum >= p->end || sum->code != PB_CODE_ADD)
        return false;
    const int other = pb_instr_reads(sum, 0, product->dst) ? 1 : 0;
    const uint8_t r = sum->src[other];
    if (!pb_instr_reads(sum, 1 - other, product->dst) || pb_instr_reads(sum, other, product->dst) ||
        !(sum->dst == product->dst || is_over(p, sum + 1, product->dst)))
        return false;
    if (*mask & 1) { /* a product's operands change places */
        step->src[0] = step->src[1];
        *mask = 2;
    }
    if (is_number(sum, other) || p->is_even[r]) {
        step->imm[1] = is_number(sum, other) ? &sum->imm[0] : &p->strip->even[r];
        *mask |= 4;
    } else {
        step->src[2] = r;
    }
    step->dst = sum->dst;
    return true;
}

/* The step of an operation and those that share its loop; returns how many instructions. */
static uint32_t plan_operation(struct planner *p, const struct pb_instr *instr,
                               struct pb_strip_step *step)
{
    const bool is_even = has_even_operands(p, instr);

    if (is_even) {
        step->run = run_one;
        step->loop = pb_vm_loops[instr->code][instr->imm_mask];
        set_result(p, instr->dst, true, false);
        return 1;
    }
    unsigned mask = find_immediates(p, instr, step);
    const bool fills = pb_instr_operands(instr) == 3 && p->is_even[instr->src[0]];
    const bool two = add_to_product(p, instr, step, &mask);
    const struct pb_instr *const next = instr + 1 + two;
    step->planes = find_planes(p, step);
    pb_vm_loop *const store = two ? pb_vm_product_sums[1][mask] : pb_vm_stores[instr->code][mask];

    if (store != NULL && next < p->end && next->code == PB_CODE_STORE &&
        pb_instr_reads(next, 0, step->dst) && is_over(p, next + 1, step->dst)) {
        step->run = fills ? run_filled_stored : run_stored;
        step->loop = store;
        step->instr = next;
        return 2u + two;
    }
    step->run = fills ? run_filled : run_loop;
    step->loop = two ? pb_vm_product_sums[0][mask] : pb_vm_loops[instr->code][mask];
    set_result(p, step->dst, false, false);
    return 1u + two;
}

static void plan_other(struct planner *p, const struct pb_instr *instr, struct pb_strip_step *step)
{
    const bool reads = pb_instr_operands(instr) > 0;
    const bool is_even =
        reads ? has_even_operands(p, instr)
              : instr->code == PB_CODE_CONST || (instr->code == PB_CODE_INDEX && instr->index == 1);

    if (reads && is_even && !is_number(instr, 0))
        step->imm[0] = &p->strip->even[instr->src[0]];
    const bool is_plane = instr->code == PB_CODE_PLANE && !p->in_place;
    step->run = pb_strip_others[instr->code][is_even || is_plane];
    step->planes = reads ? find_planes(p, step) : 0;
    if (pb_instr_has_result(instr))
        set_result(p, instr->dst, is_even, is_plane);
}

static bool is_in_place(const struct pb_sweep *sweep)
{
    const struct pb_instr *const code = sweep->code;

    for (uint32_t i = 0; sweep->out == sweep->planes && i < sweep->n_code; i++)
        for (uint32_t k = 0; code[i].code == PB_CODE_STORE && k < sweep->n_code; k++)
            if (code[k].code == PB_CODE_PLANE && code[k].index == code[i].index)
                return true;
    return false;
}

uint32_t pb_strip_plan(struct pb_strip *s, struct pb_strip_step *steps)
{
    struct planner p = {
        .strip = s, .end = s->sweep->code + s->sweep->n_code, .in_place = is_in_place(s->sweep)};
    uint32_t n = 0;

    for (const struct pb_instr *instr = s->sweep->code; instr < p.end; n++) {
        steps[n] = (struct pb_strip_step){.instr = instr,
                                          .imm = {&instr->imm[0], &instr->imm[1]},
                                          .dst = instr->dst,
                                          .src = {instr->src[0], instr->src[1], instr->src[2]}};
        if (instr->code < PB_CODE_CONST) {
            instr += plan_operation(&p, instr, &steps[n]);
        } else {
            plan_other(&p, instr, &steps[n]);
            instr++;
        }
        assert(steps[n].run != NULL);
    }
    return n;
}
