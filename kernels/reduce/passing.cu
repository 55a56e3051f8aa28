// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce/passing_device.h"
#include "wic/device/cuda_errno.h"

#include <cerrno>

namespace
{
constexpr uint32_t THREADS = 256, WARP = 32;
constexpr uint64_t SHARE_PX = 1 << 15, SHARES_MAX = 32; // thread blocks of a plane
constexpr uint32_t PLANES_MAX = 65535;                  // limit of a grid

// A block counts every gridDim.x-th row of a plane.
__global__ void __launch_bounds__(THREADS)
    count_passing(const pb_statistics_plane *planes, uint32_t *counts)
{
    const pb_statistics_plane plane = planes[blockIdx.y];
    uint32_t n = 0;
    for (int32_t y = static_cast<int32_t>(blockIdx.x); y < plane.h;
         y += static_cast<int32_t>(gridDim.x)) {
        const float *const row = plane.data + static_cast<size_t>(y) * plane.row_px;
        for (int32_t x = static_cast<int32_t>(threadIdx.x); x < plane.w; x += THREADS) {
            n += pb_pixel_passes(row[x]) ? 1 : 0;
        }
    }
    for (uint32_t half = WARP / 2; half > 0; half /= 2) {
        n += __shfl_down_sync(0xffffffff, n, half);
    }
    if (threadIdx.x % WARP == 0 && n > 0) {
        atomicAdd(&counts[blockIdx.y], n);
    }
}
} // namespace

int pb_passing_cuda(const struct pb_statistics_plane *planes, uint32_t n, uint64_t most_px,
                    uint32_t *counts, void *stream)
{
    const uint64_t wanted = (most_px + SHARE_PX - 1) / SHARE_PX;
    auto *const queue = static_cast<cudaStream_t>(stream);
    if (n == 0 || n > PLANES_MAX || most_px == 0) {
        return -EINVAL;
    }
    const cudaError_t cleared = cudaMemsetAsync(counts, 0, n * sizeof *counts, queue);
    if (cleared != cudaSuccess) {
        return wic_cuda_errno(cleared);
    }
    count_passing<<<dim3(static_cast<uint32_t>(wanted < SHARES_MAX ? wanted : SHARES_MAX), n),
                    THREADS, 0, queue>>>(planes, counts);
    return wic_cuda_errno(cudaGetLastError());
}
