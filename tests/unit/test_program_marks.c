/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The marks of random programs: an interpreter that keeps the last result at hand, and no result in
 * a register that is marked local, stores the same. */
#include "kernels/vm/program_marks.h"

#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdint.h>

enum { CODE_MAX = 40, REGISTERS = 5, INPUTS = 4 };

static uint32_t seed = 20261128;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static struct pb_program_input inputs[INPUTS] = {
    {.type = PB_U16}, {.type = PB_U16}, {.type = PB_F32}, {.type = PB_U16}};

static struct pb_instr random_instr(void)
{
    static const uint8_t codes[] = {PB_CODE_ADD,   PB_CODE_SUB,   PB_CODE_NEG,  PB_CODE_CLAMP,
                                    PB_CODE_INPUT, PB_CODE_INPUT, PB_CODE_STORE};
    struct pb_instr instr = {.code = codes[below(sizeof codes)],
                             .dst = (uint8_t)below(REGISTERS),
                             .index = (uint16_t)below(INPUTS),
                             .imm = {(float)below(9), (float)below(9)}};

    for (int k = 0; k < 3; k++)
        instr.src[k] = (uint8_t)below(REGISTERS);
    if (instr.code == PB_CODE_ADD || instr.code == PB_CODE_SUB)
        instr.imm_mask = (uint8_t)below(3);
    if (instr.code == PB_CODE_CLAMP)
        instr.imm_mask = (uint8_t)(below(4) << 1);
    return instr;
}

struct machine {
    float reg[REGISTERS], last, stored[CODE_MAX];
    int n_stored;
};

static float operand(const struct machine *m, const struct pb_instr *instr, int k)
{
    if (instr->imm_mask >> k & 1)
        return instr->imm[k == 2];
    return k < 2 && instr->imm_mask & PB_MARK_X << k ? m->last : m->reg[instr->src[k]];
}

static float result(const struct machine *m, const struct pb_instr *instr)
{
    switch (instr->code) {
    case PB_CODE_ADD:
        return operand(m, instr, 0) + operand(m, instr, 1);
    case PB_CODE_SUB:
        return operand(m, instr, 0) - operand(m, instr, 1);
    case PB_CODE_NEG:
        return -operand(m, instr, 0);
    case PB_CODE_CLAMP:
        return operand(m, instr, 0) + 3 * operand(m, instr, 1) + 7 * operand(m, instr, 2);
    default:
        return (float)(100 + instr->index);
    }
}

static void run(const struct pb_instr *code, uint32_t n, struct machine *m)
{
    *m = (struct machine){.reg = {1, 2, 3, 4, 5}};
    for (uint32_t i = 0; i < n; i++) {
        if (code[i].code == PB_CODE_STORE) {
            m->stored[m->n_stored++] = operand(m, &code[i], 0);
            continue;
        }
        m->last = result(m, &code[i]);
        m->reg[code[i].dst] = code[i].imm_mask & PB_MARK_LOCAL ? NAN : m->last;
    }
}

START_TEST(what_is_stored_is_the_same)
{
    for (int round = 0; round < 20000; round++) {
        struct pb_instr code[CODE_MAX];
        struct machine plain, marked;
        const uint32_t n = 1 + below(CODE_MAX);

        for (uint32_t i = 0; i < n; i++)
            code[i] = random_instr();
        run(code, n, &plain);
        pb_program_mark(code, n, inputs);
        run(code, n, &marked);
        ck_assert_int_eq(plain.n_stored, marked.n_stored);
        for (int i = 0; i < plain.n_stored; i++)
            ck_assert_msg(plain.stored[i] == marked.stored[i], "round %d, store %d: %g, not %g",
                          round, i, (double)marked.stored[i], (double)plain.stored[i]);
    }
}
END_TEST

START_TEST(an_index_of_two_bands_passes_its_results_on)
{
    struct pb_instr code[] = {
        {.code = PB_CODE_INPUT, .dst = 0, .index = 0},
        {.code = PB_CODE_INPUT, .dst = 1, .index = 1},
        {.code = PB_CODE_SUB, .dst = 2, .src = {0, 1}},
        {.code = PB_CODE_ADD, .dst = 0, .src = {0, 1}},
        {.code = PB_CODE_DIV, .dst = 2, .src = {2, 0}},
        {.code = PB_CODE_STORE, .src = {2}},
    };
    static const uint8_t marks[] = {
        PB_MARK_PAIR, 0, PB_MARK_Y, PB_MARK_LOCAL, PB_MARK_Y | PB_MARK_LOCAL, PB_MARK_X};

    pb_program_mark(code, 6, inputs);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(code[i].imm_mask == marks[i], "instruction %d: %#x, not %#x", i,
                      code[i].imm_mask, marks[i]);
}
END_TEST

START_TEST(bands_of_one_type_are_loaded_two_at_a_time)
{
    static const uint16_t order[] = {0, 1, 3, 2, 0, 3};
    static const bool pair[] = {true, false, false, false, true, false};
    struct pb_instr code[6];

    for (int i = 0; i < 6; i++)
        code[i] = (struct pb_instr){
            .code = PB_CODE_INPUT, .dst = (uint8_t)(i % REGISTERS), .index = order[i]};
    pb_program_mark(code, 6, inputs);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(!!(code[i].imm_mask & PB_MARK_PAIR) == pair[i], "instruction %d", i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program_marks");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, what_is_stored_is_the_same);
    tcase_add_test(tcase, an_index_of_two_bands_passes_its_results_on);
    tcase_add_test(tcase, bands_of_one_type_are_loaded_two_at_a_time);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
