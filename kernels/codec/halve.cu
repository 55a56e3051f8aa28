// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/halve.cuh"
#include "wic/device/cuda_errno.h"

namespace
{
constexpr unsigned WARPS = 8, PARTS_MAX = 65535;

template <bool NEAREST>
__global__ void __launch_bounds__(WARPS * 32) halve_rows(const pb_halve_part *parts, uint32_t n)
{
    const int32_t y = static_cast<int32_t>(blockIdx.x * WARPS + threadIdx.x / 32);
    for (uint32_t i = blockIdx.y; i < n; i += gridDim.y) {
        pb_halve_row<NEAREST>(parts[i], blockIdx.z, y, threadIdx.x % 32);
    }
}
} // namespace

int pb_halve_cuda(const struct pb_halve_part *parts, uint32_t n, uint32_t n_planes,
                  int32_t most_rows, bool nearest, void *stream)
{
    auto *const kernel = nearest ? halve_rows<true> : halve_rows<false>;
    if (n == 0 || n_planes == 0 || n_planes > PARTS_MAX || most_rows < 1) {
        return -EINVAL;
    }
    const auto rows = (static_cast<unsigned>(most_rows) + 1) / 2;
    const dim3 grid((rows + WARPS - 1) / WARPS, n < PARTS_MAX ? n : PARTS_MAX, n_planes);
    kernel<<<grid, WARPS * 32, 0, static_cast<cudaStream_t>(stream)>>>(parts, n);
    return wic_cuda_errno(cudaGetLastError());
}
