// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// One sweep as a kernel of its own: the interpreter of program.cuh on all threads of a grid. The
// more registers a program has, the fewer threads a block gets, so that 48 KiB of shared memory
// suffice and every device since SM 7.5 behaves alike.
#include "kernels/vm/program.cuh"
#include "kernels/launch.cuh"

namespace
{
constexpr int THREADS_MAX = 128;
// Blocks of that many threads on a multiprocessor, at least: it bounds the registers of a thread.
constexpr int blocks_min(int px)
{
    return px == 16 ? 4 : px == 8 ? 6 : 8;
}
// Programs with few registers take 8 or 16 pixels a thread, where the spans fill the rows.
constexpr uint32_t REGISTERS_FOR_16 = 6, REGISTERS_FOR_8 = 8;
// Places on other grids take registers of the thread.
template <class Sweep> constexpr bool takes_16 = true;
template <class Sweep> constexpr bool takes_16<pb_device::on_grids<Sweep>> = false;
constexpr size_t SHARED_BYTES = 48 * 1024;

// THREADS: of a block, 0: any number.
template <int PX, int THREADS, class Sweep>
__global__ void __launch_bounds__(THREADS_MAX, blocks_min(PX))
    run_program(const __grid_constant__ Sweep sweep)
{
    extern __shared__ float4 shared[];
    const uint32_t threads = THREADS ? THREADS : blockDim.x;
    pb_device::run_program<PX, THREADS>(sweep, {threadIdx.x, threads}, blockIdx.x * threads,
                                        gridDim.x * threads, shared);
}

constexpr size_t shared_bytes(int px, unsigned threads, uint32_t n_registers)
{
    return static_cast<size_t>(px) * sizeof(float) * threads * n_registers;
}

template <int PX, int THREADS, class Sweep>
int launch(const Sweep &sweep, unsigned threads, uint32_t n_registers, cudaStream_t stream)
{
    const size_t total = static_cast<size_t>(sweep.rect.w) * static_cast<size_t>(sweep.rect.h);
    const unsigned blocks = pb_cuda_blocks(total, threads * PX);
    if (blocks == 0) {
        return -EIO;
    }
    run_program<PX, THREADS, Sweep>
        <<<blocks, threads, shared_bytes(PX, threads, n_registers), stream>>>(sweep);
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}

// As many threads as the registers leave room for.
template <int PX, class Sweep>
int launch_fewer(const Sweep &sweep, uint32_t n_registers, cudaStream_t stream)
{
    unsigned threads = THREADS_MAX;
    while (threads > 32 && shared_bytes(PX, threads, n_registers) > SHARED_BYTES) {
        threads /= 2;
    }
    return launch<PX, 0>(sweep, threads, n_registers, stream);
}

// Whether spans of so many pixels have less than an eighth of them beyond the ends of the rows.
bool fills_rows(const pb_rect &rect, int32_t span)
{
    return (rect.w + span - 1) / span * span <= rect.w + rect.w / 8;
}

template <class Sweep> int run(const Sweep &sweep, cudaStream_t stream)
{
    const uint32_t n_registers = sweep.n_registers ? sweep.n_registers : 1;
    if constexpr (takes_16<Sweep>) {
        if (n_registers <= REGISTERS_FOR_16 && fills_rows(sweep.rect, pb_device::shape<16>::SPAN)) {
            return launch<16, THREADS_MAX>(sweep, THREADS_MAX, n_registers, stream);
        }
    }
    if (n_registers <= REGISTERS_FOR_8 && fills_rows(sweep.rect, pb_device::shape<8>::SPAN)) {
        return launch<8, THREADS_MAX>(sweep, THREADS_MAX, n_registers, stream);
    }
    if (shared_bytes(4, THREADS_MAX, n_registers) <= SHARED_BYTES) {
        return launch<4, THREADS_MAX>(sweep, THREADS_MAX, n_registers, stream);
    }
    if (shared_bytes(4, 32, n_registers) <= SHARED_BYTES) {
        return launch_fewer<4>(sweep, n_registers, stream);
    }
    return launch_fewer<1>(sweep, n_registers, stream);
}
} // namespace

int pb_program_run_cuda(const struct pb_sweep *sweep, void *stream)
{
    const auto cuda = static_cast<cudaStream_t>(stream);
    if (sweep->rect.w <= 0 || sweep->rect.h <= 0) {
        return 0;
    }
    if (static_cast<uint64_t>(sweep->rect.w) * static_cast<uint64_t>(sweep->rect.h) > INT32_MAX) {
        return -EIO; // pixels are numbered with 32 bits
    }
    if (sweep->places) {
        return run(pb_device::on_grids<pb_sweep>{*sweep}, cuda);
    }
    return run(*sweep, cuda);
}
