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
    return px == 8 ? 6 : 8;
}
// Programs with few registers take 8 pixels a thread.
constexpr uint32_t REGISTERS_FOR_8 = 8;
constexpr size_t SHARED_BYTES = 48 * 1024;

template <int PX, class Sweep>
__global__ void __launch_bounds__(THREADS_MAX, blocks_min(PX))
    run_program(const __grid_constant__ Sweep sweep)
{
    extern __shared__ float4 shared[];
    pb_device::run_program<PX>(sweep, {threadIdx.x, blockDim.x}, blockIdx.x * blockDim.x,
                               gridDim.x * blockDim.x, shared);
}

// PX pixels a thread and as many threads as fit.
template <int PX, class Sweep>
int launch(const Sweep &sweep, uint32_t n_registers, cudaStream_t stream)
{
    const size_t total = static_cast<size_t>(sweep.rect.w) * static_cast<size_t>(sweep.rect.h);
    const size_t thread_bytes = n_registers * sizeof(pb_device::pixels<PX>);
    unsigned threads = THREADS_MAX;
    while (threads > 32 && threads * thread_bytes > SHARED_BYTES) {
        threads /= 2;
    }
    const unsigned blocks = pb_cuda_blocks(total, threads * PX);
    if (blocks == 0) {
        return -EIO;
    }
    run_program<PX, Sweep><<<blocks, threads, threads * thread_bytes, stream>>>(sweep);
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}

template <class Sweep> int run(const Sweep &sweep, cudaStream_t stream)
{
    const uint32_t n_registers = sweep.n_registers ? sweep.n_registers : 1;
    if (n_registers <= REGISTERS_FOR_8) {
        return launch<8>(sweep, n_registers, stream);
    }
    if (32 * n_registers * sizeof(pb_device::pixels<4>) <= SHARED_BYTES) {
        return launch<4>(sweep, n_registers, stream);
    }
    return launch<1>(sweep, n_registers, stream);
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
