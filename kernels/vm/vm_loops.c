/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every loop body is one pixel function, so the loops are generated from vm_ops.def: one for each
 * shape of operands (register or immediate). The bodies have no branches after inlining; the
 * compiler makes vector code of them (checked by tests/bench/bench_ops.c: more than 1 px a ns). */
#include "kernels/vm/vm_loops.h"
#include "kernels/vm/vm_pixel.h"

#define LOOP(name, shape, call)                                                                    \
    PB_CLONES static void loop_##name##_##shape(const struct pb_vm_strip *strip)                   \
    {                                                                                              \
        float *const out = strip->out;                                                             \
        const size_t n = strip->n;                                                                 \
        OPERANDS                                                                                   \
        PB_INDEPENDENT                                                                             \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = pb_vm_##name call;                                                            \
    }

#define LOOPS_1(name) LOOP(name, r, (x[i]))
#define LOOPS_2(name)                                                                              \
    LOOP(name, rr, (x[i], y[i]))                                                                   \
    LOOP(name, ir, (a, y[i]))                                                                      \
    LOOP(name, ri, (x[i], a))
#define LOOPS_3(name)                                                                              \
    LOOP(name, rrr, (x[i], y[i], z[i]))                                                            \
    LOOP(name, rir, (x[i], a, z[i]))                                                               \
    LOOP(name, rri, (x[i], y[i], b))                                                               \
    LOOP(name, rii, (x[i], a, b))

#define OPERANDS                                                                                   \
    const float *const x = strip->src[0], *const y = strip->src[1], *const z = strip->src[2];      \
    const float a = strip->imm[0], b = strip->imm[1];                                              \
    (void)x, (void)y, (void)z, (void)a, (void)b;

#define PB_VM_OP(name, arity) LOOPS_##arity(name)
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP

#define ROW_1(name)                                                                                \
    {                                                                                              \
        loop_##name##_r                                                                            \
    }
#define ROW_2(name)                                                                                \
    {                                                                                              \
        loop_##name##_rr, loop_##name##_ir, loop_##name##_ri                                       \
    }
#define ROW_3(name)                                                                                \
    {                                                                                              \
        loop_##name##_rrr, NULL, loop_##name##_rir, NULL, loop_##name##_rri, NULL,                 \
            loop_##name##_rii                                                                      \
    }

pb_vm_loop *const pb_vm_loops[PB_VM_COUNT][8] = {
#define PB_VM_OP(name, arity) ROW_##arity(name),
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
};

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
