// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_PROGRAM_CUH
#define PB_PROGRAM_CUH
// The interpreter for GPUs. A thread runs the whole program for PX pixels of a row
// (program_place.cuh), so the decoding of an instruction (uniform: every thread takes the
// same branch) is shared by PX pixels. Who the threads are is the caller's business: a whole block
// (program.cu) or some warps of one (chain_block.cuh).
#include "kernels/vm/curve_pixel.h"
#include "kernels/vm/program_load.cuh"
#include "kernels/vm/program_ops.cuh"

namespace pb_device
{
template <int PX, class Sweep>
__device__ pixels<PX> run_curve(const Sweep &sweep, const pb_instr &instr, pixels<PX> value)
{
    const auto *const knots = reinterpret_cast<const float *>(sweep.code + instr.curve.at);
#pragma unroll
    for (int j = 0; j < PX; j++) {
        value.v[j] = pb_curve_at(knots, instr.curve.n, value.v[j]);
    }
    return value;
}

// An instruction that has a result. last: that of the one before.
template <int PX, class Sweep, class Registers>
__device__ pixels<PX> execute(const Sweep &sweep, const Registers &registers, const place &at,
                              const pb_instr &instr, const pixels<PX> &last)
{
    switch (instr.code) {
#define PB_VM_OP(name, arity)                                                                      \
    case PB_CODE_##name:                                                                           \
        return apply<PB_CODE_##name, PX>(registers, instr, last);
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
    case PB_CODE_CONST:
        return filled<PX>(instr.imm[0]);
    case PB_CODE_INPUT: {
        pixels<PX> out[1];
        load_inputs<1, PX>(sweep, &instr, at, out);
        return out[0];
    }
    case PB_CODE_PLANE:
        return load_plane<PX>(sweep, instr, at);
    case PB_CODE_INDEX:
        return load_index<PX>(sweep, instr, at);
    case PB_CODE_CURVE:
        return run_curve<PX>(sweep, instr, fetch<PX>(registers, instr, 0, last).value);
    default:
        __builtin_unreachable();
    }
}

// The instructions of a program one after the other; each is fetched while the one before it runs.
class instruction_stream
{
  public:
    explicit __device__ instruction_stream(const pb_instr *code)
        : next_(reinterpret_cast<const uint4 *>(code)), ahead_(*next_)
    {
    }
    // The last time one behind the program is fetched, which is there.
    __device__ pb_instr take()
    {
        const uint4 raw = ahead_;
        ahead_ = *++next_;
        pb_instr instr;
        memcpy(&instr, &raw, sizeof instr);
        return instr;
    }

  private:
    const uint4 *next_;
    uint4 ahead_;
};

// The whole program for the pixels of a place.
template <int PX, class Sweep, class Registers>
__device__ void run_instructions(const Sweep &sweep, const Registers &registers, const place &at)
{
    instruction_stream code(sweep.code);
    pixels<PX> last = filled<PX>(0.0f);
    for (uint32_t left = sweep.n_code; left != 0; left--) {
        pb_instr instr = code.take();
        if (instr.code == PB_CODE_STORE) {
            store_pixels<PX>(sweep, instr, at, operand<PX>(registers, instr, 0, last).value);
            continue;
        }
        if (instr.imm_mask & PB_MARK_PAIR) {
            const pb_instr both[2] = {instr, code.take()};
            pixels<PX> loaded[2];
            load_inputs<2, PX>(sweep, both, at, loaded);
            registers.set(instr.dst, loaded[0]);
            left--;
            instr = both[1];
            last = loaded[1];
        } else {
            last = execute<PX>(sweep, registers, at, instr, last);
        }
        if (!(instr.imm_mask & PB_MARK_LOCAL)) {
            registers.set(instr.dst, last);
        }
    }
}

static_assert(sizeof(pb_instr) == sizeof(uint4), "an instruction is one 16-byte load");

// A thread makes the pixels that thread number `first` + its own has, then those of the number
// `stride` further on; both are multiples of the lanes of a span. `shared`: n_registers *
// me.threads of pixels<PX>, in shared memory, aligned to 16 bytes. THREADS: me.threads where the
// compiler knows it, else 0.
template <int PX, int THREADS, class Sweep>
__device__ void run_program(const Sweep &sweep, const member &me, uint32_t first, uint32_t stride,
                            void *shared)
{
    const register_file<PX, THREADS> registers(shared, me);
    const uint32_t total = walk<PX>::threads_of(sweep.rect);
    walk<PX> pixels_of_thread(sweep.rect, first + me.thread, stride);

    for (; first < total; first += stride, pixels_of_thread.next()) {
        run_instructions<PX>(sweep, registers, pixels_of_thread.find(sweep));
    }
}
} // namespace pb_device
#endif
