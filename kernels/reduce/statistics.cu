// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce/percentiles.cuh"
#include "kernels/reduce/percentiles_device.h"
#include "kernels/reduce/statistics.cuh"
#include "wic/device/cuda_errno.h"

namespace
{
using pb_device::STATISTICS_THREADS;
constexpr uint64_t SHARE_PX = 1 << 15, SHARES_MAX = 32; // thread blocks of a plane
constexpr uint32_t PLANES_MAX = 65535;                  // of a grid

__global__ void __launch_bounds__(STATISTICS_THREADS) begin(pb_statistics_part *parts)
{
    pb_statistics_begin(&parts[blockIdx.x], pb_block_group{threadIdx.x, blockDim.x});
}

__global__ void __launch_bounds__(STATISTICS_THREADS)
    moments(const pb_statistics_plane *planes, pb_statistics_part *parts)
{
    __shared__ pb_device::moments_arena arena;
    pb_statistics_moments(planes[blockIdx.y], blockIdx.x, gridDim.x, arena, &parts[blockIdx.y],
                          pb_block_group{threadIdx.x, blockDim.x});
}

__global__ void __launch_bounds__(STATISTICS_THREADS)
    bins(const pb_statistics_plane *planes, pb_statistics_part *parts)
{
    __shared__ pb_device::bins_arena arena;
    pb_statistics_bins(planes[blockIdx.y], blockIdx.x, gridDim.x, arena, &parts[blockIdx.y],
                       pb_block_group{threadIdx.x, blockDim.x});
}

__global__ void __launch_bounds__(pb_device::PERCENTILES_THREADS)
    percentiles(const pb_statistics_plane *planes, pb_percentiles *state)
{
    __shared__ pb_device::percentiles_arena arena;
    pb_percentiles_rows(planes[blockIdx.y], blockIdx.x, gridDim.x, arena, state,
                        pb_block_group{threadIdx.x, blockDim.x});
}

// Thread blocks of each plane.
uint32_t shares_of(uint64_t most_px)
{
    const uint64_t wanted = (most_px + SHARE_PX - 1) / SHARE_PX;
    return static_cast<uint32_t>(wanted < SHARES_MAX ? wanted : SHARES_MAX);
}
} // namespace

int pb_statistics_cuda(const struct pb_statistics_plane *planes, uint32_t n, uint64_t most_px,
                       struct pb_statistics_part *parts, void *stream)
{
    const uint32_t shares = shares_of(most_px);
    auto *const queue = static_cast<cudaStream_t>(stream);
    if (n == 0 || n > PLANES_MAX || most_px == 0) {
        return -EINVAL;
    }
    begin<<<n, STATISTICS_THREADS, 0, queue>>>(parts);
    moments<<<dim3(shares, n), STATISTICS_THREADS, 0, queue>>>(planes, parts);
    bins<<<dim3(shares, n), STATISTICS_THREADS, 0, queue>>>(planes, parts);
    return wic_cuda_errno(cudaGetLastError());
}

int pb_percentiles_cuda(struct pb_percentiles *state, const struct pb_statistics_plane *planes,
                        uint32_t n, uint64_t most_px, void *stream)
{
    if (n == 0 || n > PLANES_MAX || most_px == 0) {
        return -EINVAL;
    }
    percentiles<<<dim3(shares_of(most_px), n), pb_device::PERCENTILES_THREADS, 0,
                  static_cast<cudaStream_t>(stream)>>>(planes, state);
    return wic_cuda_errno(cudaGetLastError());
}
