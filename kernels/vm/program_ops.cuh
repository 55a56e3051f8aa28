// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_PROGRAM_OPS_CUH
#define PB_PROGRAM_OPS_CUH
// The operations of vm_ops.def on all pixels of a thread.
#include "kernels/vm/program_registers.cuh"
#include "kernels/vm/vm_op.h"
#include "kernels/vm/vm_pixel.h"

namespace pb_device
{
// One number for all pixels of a thread.
template <int PX> struct number {
    float value;
    __device__ float at(int) const
    {
        return value;
    }
};
// A register.
template <int PX> struct column {
    pixels<PX> value;
    __device__ float at(int j) const
    {
        return value.v[j];
    }
};

// An operation by its code.
template <int CODE> struct operation;
#define ARGS_1 (x)
#define ARGS_2 (x, y)
#define ARGS_3 (x, y, z)
#define PB_VM_OP(name, n)                                                                          \
    template <> struct operation<PB_VM_##name> {                                                   \
        static constexpr int arity = n;                                                            \
        static __device__ float of(float x, float y, float z)                                      \
        {                                                                                          \
            (void)y, (void)z;                                                                      \
            return pb_vm_##name ARGS_##n;                                                          \
        }                                                                                          \
    };
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
#undef ARGS_1
#undef ARGS_2
#undef ARGS_3

// Whether code for numbers as operands pays: of a long operation it would be long, and save little.
template <int CODE>
constexpr bool is_short =
    CODE != PB_VM_POW &&CODE != PB_VM_MOD &&CODE != PB_VM_BITS &&CODE != PB_VM_ATAN2;

inline __device__ float reciprocal(float y)
{
#ifdef PB_EMULATED
    return 1.0f / y;
#else
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
    return r;
#endif
}

// x / y, correctly rounded for numbers that is_plain_quotient allows: the way of the compiler's own
// division, which looks at every pixel to choose between this and a longer one.
inline __device__ float divide_plain(float x, float y)
{
    const float approximate = reciprocal(y);
    const float r = fmaf(approximate, fmaf(approximate, -y, 1.0f), approximate);
    const float q = x * r;
    return fmaf(r, fmaf(q, -y, x), q);
}

// Looks at exponents, all pixels at once. The two highest bits of an exponent differ from 2^-63 to
// 2^65; if the third is as the second, too, it is 2^-31 to 2^33. With the dividend in the wider and
// the divisor in the narrower range nothing on the way overflows or loses bits.
class plain_quotients
{
  public:
    __device__ void add(float x, float y)
    {
        const uint32_t of_x = steps(x), of_y = steps(y);
        differ_ &= of_x & of_y;
        narrow_ |= of_y;
    }
    __device__ bool all() const
    {
        return (differ_ & 1u << 30) != 0 && (narrow_ & 1u << 29) == 0;
    }

  private:
    // A bit is set where it differs from the one below.
    static __device__ uint32_t steps(float v)
    {
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        return bits ^ bits << 1;
    }
    uint32_t differ_ = ~0u, narrow_ = 0;
};

template <int CODE, int PX, class X, class Y, class Z>
__device__ pixels<PX> compute(const X &x, const Y &y, const Z &z)
{
    pixels<PX> out;
    if constexpr (CODE == PB_VM_DIV && PX > 1) {
        plain_quotients quotients;
#pragma unroll
        for (int j = 0; j < PX; j++) {
            quotients.add(x.at(j), y.at(j));
        }
        if (quotients.all()) {
#pragma unroll
            for (int j = 0; j < PX; j++) {
                out.v[j] = divide_plain(x.at(j), y.at(j));
            }
            return out;
        }
    }
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out.v[j] = operation<CODE>::of(x.at(j), y.at(j), z.at(j));
    }
    return out;
}

// Operand k, which is no number: the last result, or a register.
template <int PX, class Registers>
__device__ column<PX> fetch(const Registers &registers, const pb_instr &instr, int k,
                            const pixels<PX> &last)
{
    if (k < 2 && instr.imm_mask & PB_MARK_X << k) {
        return {last};
    }
    return {registers.get(instr.src[k])};
}

// Any operand.
template <int PX, class Registers>
__device__ column<PX> operand(const Registers &registers, const pb_instr &instr, int k,
                              const pixels<PX> &last)
{
    if (instr.imm_mask >> k & 1) {
        return {filled<PX>(instr.imm[k == 2])};
    }
    return fetch<PX>(registers, instr, k, last);
}

template <int CODE, int PX, class Registers>
__device__ pixels<PX> compute_unary(const Registers &registers, const pb_instr &instr,
                                    const pixels<PX> &last)
{
    const column<PX> x = fetch<PX>(registers, instr, 0, last);
    return compute<CODE, PX>(x, x, x);
}

template <int CODE, int PX, class Registers>
__device__ pixels<PX> compute_binary(const Registers &registers, const pb_instr &instr,
                                     const pixels<PX> &last)
{
    if constexpr (is_short<CODE>) {
        const number<PX> n = {instr.imm[0]};
        if (instr.imm_mask & 1) {
            return compute<CODE, PX>(n, fetch<PX>(registers, instr, 1, last), n);
        }
        const column<PX> x = fetch<PX>(registers, instr, 0, last);
        if (instr.imm_mask & 2) {
            return compute<CODE, PX>(x, n, n);
        }
        return compute<CODE, PX>(x, fetch<PX>(registers, instr, 1, last), n);
    } else {
        const column<PX> x = operand<PX>(registers, instr, 0, last);
        const column<PX> y = operand<PX>(registers, instr, 1, last);
        return compute<CODE, PX>(x, y, y);
    }
}

// The first operand is no number.
template <int CODE, int PX, class Registers>
__device__ pixels<PX> compute_ternary(const Registers &registers, const pb_instr &instr,
                                      const pixels<PX> &last)
{
    const column<PX> x = fetch<PX>(registers, instr, 0, last);
    if constexpr (is_short<CODE>) {
        const number<PX> n = {instr.imm[0]}, m = {instr.imm[1]};
        const uint32_t numbers = instr.imm_mask & 6;
        if (numbers == 6) {
            return compute<CODE, PX>(x, n, m);
        }
        if (numbers == 4) {
            return compute<CODE, PX>(x, fetch<PX>(registers, instr, 1, last), m);
        }
        if (numbers == 2) {
            return compute<CODE, PX>(x, n, fetch<PX>(registers, instr, 2, last));
        }
    }
    return compute<CODE, PX>(x, operand<PX>(registers, instr, 1, last),
                             operand<PX>(registers, instr, 2, last));
}

template <int CODE, int PX, class Registers>
__device__ pixels<PX> apply(const Registers &registers, const pb_instr &instr,
                            const pixels<PX> &last)
{
    constexpr int arity = operation<CODE>::arity;
    if constexpr (arity == 1) {
        return compute_unary<CODE, PX>(registers, instr, last);
    } else if constexpr (arity == 2) {
        return compute_binary<CODE, PX>(registers, instr, last);
    } else {
        return compute_ternary<CODE, PX>(registers, instr, last);
    }
}
} // namespace pb_device
#endif
