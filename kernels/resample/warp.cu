// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// One warp as a kernel of its own, all threads of a grid being the group.
#include "kernels/launch.cuh"
#include "kernels/resample/warp.cuh"

#include <cerrno>

namespace
{
constexpr unsigned THREADS = 256, EACH = 4; // pixels a thread

struct whole_grid {
    uint32_t thread, threads;
};

template <bool RELIEF>
__global__ void __launch_bounds__(THREADS)
    warp(const __grid_constant__ pb_warp_job job, const __grid_constant__ pb_plane in,
         const __grid_constant__ pb_plane heights, const __grid_constant__ pb_plane out)
{
    pb_device::run_warp<RELIEF>(
        job, in, heights, out,
        whole_grid{blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x});
}
} // namespace

int pb_warp_run_cuda(const struct pb_warp_job *job, const struct pb_plane *in,
                     const struct pb_plane *heights, const struct pb_plane *out, void *stream)
{
    const pb_rect &rect = out->rect;
    const pb_plane ground = heights != nullptr ? *heights : pb_plane{};
    if (rect.w <= 0 || rect.h <= 0) {
        return 0;
    }
    if (static_cast<uint64_t>(rect.w) * static_cast<uint64_t>(rect.h) > INT32_MAX) {
        return -EIO; // runs of pixels are numbered with 32 bits
    }
    const unsigned blocks =
        pb_cuda_blocks(static_cast<size_t>(rect.w) * static_cast<size_t>(rect.h), THREADS * EACH);
    if (blocks == 0) {
        return -EIO;
    }
    const auto kernel = heights != nullptr ? ::warp<true> : ::warp<false>;
    kernel<<<blocks, THREADS, 0, static_cast<cudaStream_t>(stream)>>>(*job, *in, ground, *out);
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}
