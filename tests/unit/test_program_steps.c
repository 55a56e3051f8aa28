/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Random programs on the CPU, of all operations, store the bits that an interpreter of single
 * pixels makes, for any values that are equal along a row and any operations that share a loop.
 * Strips along curves do, too.
 */
#include "kernels/pixel.h"
#include "kernels/vm/program.h"
#include "kernels/vm/vm_op.h"
#include "kernels/vm/curve_pixel.h"
#include "kernels/vm/vm_loops.h"
#include "kernels/vm/vm_pixel.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>

enum { CODE_MAX = 40, REGISTERS = 6, OUTPUTS = 4, W = 531, H = 3, X = 7, Y = 5 };

static uint32_t seed = 20261129;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static float number(void)
{
    static const float some[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 3.0f, 24.0f, -7.25f, 1e30f};

    return below(40) == 0 ? NAN : some[below(sizeof some / sizeof some[0])];
}

/* Mostly short operations, products before sums, and loads. */
static uint8_t random_code(void)
{
    static const uint8_t often[] = {PB_CODE_MUL,   PB_CODE_MUL,   PB_CODE_ADD,   PB_CODE_ADD,
                                    PB_CODE_WHERE, PB_CODE_CLAMP, PB_CODE_SUB,   PB_CODE_DIV,
                                    PB_CODE_INDEX, PB_CODE_INDEX, PB_CODE_CONST, PB_CODE_INPUT,
                                    PB_CODE_PLANE, PB_CODE_PLANE, PB_CODE_STORE, PB_CODE_STORE};

    return below(3) == 0 ? (uint8_t)below(PB_CODE_CONST) : often[below(sizeof often)];
}

static bool is_load(const struct pb_instr *instr)
{
    return instr->code == PB_CODE_INPUT || instr->code == PB_CODE_INDEX ||
           instr->code == PB_CODE_PLANE;
}

static struct pb_instr random_instr(void)
{
    struct pb_instr instr = {
        .code = random_code(), .dst = (uint8_t)below(REGISTERS), .imm = {number(), number()}};

    if (instr.code == PB_CODE_INDEX)
        instr.index = (uint16_t)below(2);
    if (instr.code == PB_CODE_STORE || instr.code == PB_CODE_PLANE)
        instr.index = (uint16_t)below(OUTPUTS);
    if (instr.code == PB_CODE_PLANE)
        instr.margin = 0;
    if (is_load(&instr))
        return instr;
    for (int k = 0; k < 3; k++)
        instr.src[k] = (uint8_t)below(REGISTERS);
    if (instr.code < PB_CODE_CONST && pb_vm_arity((enum pb_vm_op)instr.code) == 2)
        instr.imm_mask = (uint8_t)below(3);
    if (instr.code < PB_CODE_CONST && pb_vm_arity((enum pb_vm_op)instr.code) == 3)
        instr.imm_mask = (uint8_t)(below(4) << 1);
    if (instr.code == PB_CODE_STORE)
        instr.imm_mask = below(8) == 0;
    return instr;
}

#define CALL_1(name) pb_vm_##name(v[0])
#define CALL_2(name) pb_vm_##name(v[0], v[1])
#define CALL_3(name) pb_vm_##name(v[0], v[1], v[2])

static float operation(uint8_t code, const float v[3])
{
    switch (code) {
#define PB_VM_OP(name, arity)                                                                      \
    case PB_CODE_##name:                                                                           \
        return CALL_##arity(name);
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
    default:
        return NAN;
    }
}

static float samples[H][W], planes[OUTPUTS][H][W];

/* Stores one pixel of a program in each plane. in_place: into the planes that it reads. */
static void interpret(const struct pb_instr *code, uint32_t n, int32_t x, int32_t y, bool in_place,
                      float stored[OUTPUTS])
{
    float reg[REGISTERS], plane[OUTPUTS];

    for (int k = 0; k < OUTPUTS; k++)
        plane[k] = planes[k][y - Y][x - X];

    for (uint32_t i = 0; i < n; i++) {
        const struct pb_instr *const instr = &code[i];
        float v[3];

        for (int k = 0; k < 3; k++)
            v[k] = instr->imm_mask >> k & 1 ? instr->imm[k == 2] : reg[instr->src[k]];
        if (instr->code == PB_CODE_STORE) {
            stored[instr->index] = pb_pixel_result(v[0]);
            plane[instr->index] = in_place ? stored[instr->index] : plane[instr->index];
        } else if (instr->code == PB_CODE_PLANE)
            reg[instr->dst] = plane[instr->index];
        else if (instr->code == PB_CODE_INPUT)
            reg[instr->dst] = samples[y - Y][x - X];
        else if (instr->code == PB_CODE_INDEX)
            reg[instr->dst] = (float)(instr->index == 1 ? y : x);
        else
            reg[instr->dst] =
                instr->code == PB_CODE_CONST ? instr->imm[0] : operation(instr->code, v);
    }
}

/* Registers are written before they are read, and every plane is. */
static uint32_t random_program(struct pb_instr code[CODE_MAX])
{
    const uint32_t n = REGISTERS + 1 + below(CODE_MAX - REGISTERS - OUTPUTS - 1);

    for (uint32_t i = 0; i < n; i++) {
        do
            code[i] = random_instr();
        while (i < REGISTERS && !is_load(&code[i]) && code[i].code != PB_CODE_CONST);
        if (i < REGISTERS)
            code[i].dst = (uint8_t)i;
        else if (!is_load(&code[i]) && below(2) == 0)
            code[i].src[below(2)] = code[i - 1].dst;
    }
    for (uint32_t k = 0; k < OUTPUTS; k++)
        code[n + k] = (struct pb_instr){
            .code = PB_CODE_STORE, .src = {(uint8_t)below(REGISTERS)}, .index = (uint16_t)k};
    return n + OUTPUTS;
}

static void check_program(const struct pb_instr *code, uint32_t n, bool in_place)
{
    static const struct pb_program_input input = {.type = PB_F32};
    static float out[OUTPUTS][H][W], other[OUTPUTS][H][W];
    const struct pb_rect rect = {X, Y, W, H};
    const struct pb_sweep sweep = {
        .code = code,
        .n_code = n,
        .n_registers = REGISTERS,
        .inputs = &input,
        .in = {.core = rect,
               .image_w = X + W,
               .image_h = Y + H,
               .window[0] = {.data = samples, .row_bytes = sizeof samples[0], .rect = rect}},
        .rect = rect,
        .out = out[0][0],
        .out_px = (size_t)W * H,
        .out_row = W,
        .planes = in_place ? out[0][0] : other[0][0],
        .plane_px = (size_t)W * H};
    void *const memory = aligned_alloc(64, (pb_program_cpu_bytes(REGISTERS, n) + 63) / 64 * 64);

    ck_assert_ptr_nonnull(memory);
    memcpy(in_place ? out : other, planes, sizeof planes);
    pb_program_run_cpu(&sweep, memory);
    free(memory);
    for (int32_t i = 0; i < W * H; i++) {
        float stored[OUTPUTS];

        interpret(code, n, X + i % W, Y + i / W, in_place, stored);
        for (int k = 0; k < OUTPUTS; k++)
            ck_assert_msg(memcmp(&out[k][i / W][i % W], &stored[k], sizeof(float)) == 0,
                          "plane %d, pixel %d: %a, not %a", k, (int)i, (double)out[k][i / W][i % W],
                          (double)stored[k]);
    }
}

static float sample(void)
{
    return below(50) == 0 ? NAN : ((float)below(2000) - 900.0f) * 0.0625f;
}

START_TEST(random_programs_store_what_single_pixels_do)
{
    struct pb_instr code[CODE_MAX];

    for (int i = 0; i < W * H; i++) {
        samples[i / W][i % W] = sample();
        for (int k = 0; k < OUTPUTS; k++)
            planes[k][i / W][i % W] = sample();
    }
    for (int round = 0; round < 2000; round++)
        check_program(code, random_program(code), round % 2 == 1);
}
END_TEST

START_TEST(strip_along_a_curve_has_the_bits_of_single_pixels)
{
    enum { KNOTS = 1500, PX = 333 };
    static float knots[2 * KNOTS], x[PX], y[PX];

    for (int32_t n = 0; n <= KNOTS; n = n < 20 ? n + 1 : n * 3 - 7) {
        for (int32_t i = 0; i < n; i++) {
            knots[2 * i] = (i > 0 ? knots[2 * i - 2] : -90.0f) + 0.125f * (float)(1 + below(9));
            knots[2 * i + 1] = sample();
        }
        for (int i = 0; i < PX; i++)
            x[i] = below(3) == 0 && n > 0 ? knots[2 * below((uint32_t)n)] : 2.0f * sample();
        pb_vm_curve(knots, n, x, y, PX);
        for (int i = 0; i < PX; i++) {
            const float alone = pb_curve_at(knots, n, x[i]);

            ck_assert_msg(
                memcmp(&y[i], &alone, sizeof alone) == 0 || (y[i] != y[i] && alone != alone),
                "%d knots at %g: %a, not %a", (int)n, (double)x[i], (double)y[i], (double)alone);
        }
        pb_vm_curve(knots, n, x, x, PX); /* in place */
        ck_assert_int_eq(memcmp(x, y, sizeof y), 0);
    }
}
END_TEST

/* Any two numbers, near ones, and a multiple of a number or what is next to it. */
static void two_numbers(int kind, float *x, float *y)
{
    const uint32_t bits = below(1u << 24) << 8 | below(256);
    const uint32_t exponent = (bits >> 23 & 255) > 28 ? (bits >> 23 & 255) - below(29) : 1;

    *x = pb_vm_number32(bits);
    *y = pb_vm_number32(kind == 0 ? bits ^ below(1u << 24) << 7
                                  : (bits & 0x80000000u) | exponent << 23 | below(1u << 23));
    if (kind == 2) {
        *y = (float)(1 + below(100000)) * 0.25f;
        *x = nextafterf(*y * (float)below(1u << 23), below(2) ? INFINITY : 0.0f);
    }
}

START_TEST(what_a_division_leaves_is_what_fmodf_makes)
{
    for (int i = 0; i < 2000000; i++) {
        float x, y;

        two_numbers(i % 3, &x, &y);
        const float want = fmodf(x, y), is = pb_vm_rest(x, y);
        ck_assert_msg(memcmp(&want, &is, sizeof is) == 0 || (want != want && is != is),
                      "%a by %a: %a, not %a", (double)x, (double)y, (double)is, (double)want);
    }
    ck_assert(pb_vm_rest(5.0f, INFINITY) == 5.0f && signbit(pb_vm_rest(-6.0f, 3.0f)));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("program_steps");
    TCase *const tc = tcase_create("steps");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, random_programs_store_what_single_pixels_do);
    tcase_add_test(tc, strip_along_a_curve_has_the_bits_of_single_pixels);
    tcase_add_test(tc, what_a_division_leaves_is_what_fmodf_makes);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
