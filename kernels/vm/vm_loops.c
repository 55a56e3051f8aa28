/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every loop body is one pixel function, so the loops are generated from vm_ops.def: one for each
 * shape of operands (register or immediate). The bodies have no branches after inlining; the
 * compiler makes vector code of them (checked by tests/bench/bench_ops.c: more than 1 px a ns). */
#include "kernels/vm/vm_loops.h"
#include "kernels/vm/vm_pixel.h"

#define LOOP(name, value)                                                                          \
    PB_CLONES static void name(const struct pb_vm_strip *strip)                                    \
    {                                                                                              \
        float *const out = strip->out;                                                             \
        const size_t n = strip->n;                                                                 \
        OPERANDS                                                                                   \
        PB_INDEPENDENT                                                                             \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = value;                                                                        \
    }

/* kind: loop, and makes() what the pixel function gives; or store, and makes() what is stored. */
#define LOOPS_1(kind, makes, name) LOOP(kind##_##name##_r, makes(pb_vm_##name(x[i])))
#define LOOPS_2(kind, makes, name)                                                                 \
    LOOP(kind##_##name##_rr, makes(pb_vm_##name(x[i], y[i])))                                      \
    LOOP(kind##_##name##_ir, makes(pb_vm_##name(a, y[i])))                                         \
    LOOP(kind##_##name##_ri, makes(pb_vm_##name(x[i], a)))
#define LOOPS_3(kind, makes, name)                                                                 \
    LOOP(kind##_##name##_rrr, makes(pb_vm_##name(x[i], y[i], z[i])))                               \
    LOOP(kind##_##name##_rir, makes(pb_vm_##name(x[i], a, z[i])))                                  \
    LOOP(kind##_##name##_rri, makes(pb_vm_##name(x[i], y[i], b)))                                  \
    LOOP(kind##_##name##_rii, makes(pb_vm_##name(x[i], a, b)))
#define AS_IT_IS(value) (value)

#define OPERANDS                                                                                   \
    const float *const x = strip->src[0], *const y = strip->src[1], *const z = strip->src[2];      \
    const float a = strip->imm[0], b = strip->imm[1];                                              \
    (void)x, (void)y, (void)z, (void)a, (void)b;

#define PB_VM_OP(name, arity) LOOPS_##arity(loop, AS_IT_IS, name)
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP

#define ROW_1(kind, name)                                                                          \
    {                                                                                              \
        kind##_##name##_r                                                                          \
    }
#define ROW_2(kind, name)                                                                          \
    {                                                                                              \
        kind##_##name##_rr, kind##_##name##_ir, kind##_##name##_ri                                 \
    }
#define ROW_3(kind, name)                                                                          \
    {                                                                                              \
        kind##_##name##_rrr, NULL, kind##_##name##_rir, NULL, kind##_##name##_rri, NULL,           \
            kind##_##name##_rii                                                                    \
    }

pb_vm_loop *const pb_vm_loops[PB_VM_COUNT][8] = {
#define PB_VM_OP(name, arity) ROW_##arity(loop, name),
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
};

/* Operations so short that a loop of their own for storing takes much of the time. */
#define SHORT_OPS(X)                                                                               \
    X(ADD, 2)                                                                                      \
    X(SUB, 2)                                                                                      \
    X(MUL, 2)                                                                                      \
    X(DIV, 2)                                                                                      \
    X(CLAMP, 3)                                                                                    \
    X(WHERE, 3)

#define STORES(name, arity) LOOPS_##arity(store, pb_pixel_result, name)
SHORT_OPS(STORES)

pb_vm_loop *const pb_vm_stores[PB_VM_COUNT][8] = {
#define STORE_ROW(name, arity) [PB_VM_##name] = ROW_##arity(store, name),
    SHORT_OPS(STORE_ROW)
#undef STORE_ROW
};

/* The product and the sum are rounded each: what MUL and ADD make. */
#define PRODUCT_AND(kind, makes)                                                                   \
    LOOP(kind##_rrr, makes(pb_vm_ADD(pb_vm_MUL(x[i], y[i]), z[i])))                                \
    LOOP(kind##_rir, makes(pb_vm_ADD(pb_vm_MUL(x[i], a), z[i])))                                   \
    LOOP(kind##_rri, makes(pb_vm_ADD(pb_vm_MUL(x[i], y[i]), b)))                                   \
    LOOP(kind##_rii, makes(pb_vm_ADD(pb_vm_MUL(x[i], a), b)))
PRODUCT_AND(loop_sum, AS_IT_IS)
PRODUCT_AND(store_sum, pb_pixel_result)

pb_vm_loop *const pb_vm_product_sums[2][8] = {
    {loop_sum_rrr, NULL, loop_sum_rir, NULL, loop_sum_rri, NULL, loop_sum_rii},
    {store_sum_rrr, NULL, store_sum_rir, NULL, store_sum_rri, NULL, store_sum_rii}};

/* Nodata and scale are decided outside the loop: `has_nodata` and `scaled` are constants in each of
 * the four copies. */
#define LOAD_AS(fn, wide, has_nodata, scaled)                                                      \
    do {                                                                                           \
        PB_INDEPENDENT                                                                             \
        for (size_t i = 0; i < n; i++) {                                                           \
            const float v = pb_pixel_from_##fn((wide)px[i], has_nodata, nodata);                   \
            out[i] = (scaled) ? v * scale + offset : v;                                            \
        }                                                                                          \
    } while (0)

#define LOAD(suffix, type, fn, wide, field)                                                        \
    PB_CLONES static void load_##fn(const struct pb_program_input *input, const void *src,         \
                                    float *out, size_t n)                                          \
    {                                                                                              \
        const type *const px = src;                                                                \
        const wide nodata = (wide)input->field;                                                    \
        const float scale = input->scale, offset = input->offset;                                  \
                                                                                                   \
        if (input->has_nodata && input->scaled)                                                    \
            LOAD_AS(fn, wide, true, true);                                                         \
        else if (input->has_nodata)                                                                \
            LOAD_AS(fn, wide, true, false);                                                        \
        else if (input->scaled)                                                                    \
            LOAD_AS(fn, wide, false, true);                                                        \
        else                                                                                       \
            LOAD_AS(fn, wide, false, false);                                                       \
    }
PB_SAMPLE_TYPES(LOAD)

pb_vm_load *const pb_vm_loads[PB_TYPE_COUNT] = {
#define ROW(suffix, type, fn, wide, field) [PB_##suffix] = load_##fn,
    PB_SAMPLE_TYPES(ROW)
#undef ROW
};

PB_CLONES void pb_vm_mask(const uint8_t *mask, float *out, size_t n)
{
    PB_INDEPENDENT
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)mask[i] != 0 ? out[i] : pb_pixel_nan();
}

PB_CLONES void pb_vm_store(const float *src, float *out, size_t n)
{
    PB_INDEPENDENT
    for (size_t i = 0; i < n; i++)
        out[i] = pb_pixel_result(src[i]);
}

PB_CLONES void pb_vm_fill(float value, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = value;
}

PB_CLONES void pb_vm_count(int32_t first, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(first + (int32_t)i);
}
