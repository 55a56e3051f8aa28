// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_SUM_PARTS_KERNEL_CUH
#define PB_SUM_PARTS_KERNEL_CUH
// The kernel that sums up the parts of one tile (kernels/chain/chain_sums.cuh).
#include "kernels/chain/chain_kernels.cuh"
#include "kernels/chain/chain_sums.cuh"

namespace pb_device
{
template <int PX, pb_chain_kind KIND>
__global__ void __launch_bounds__(sum_parts_threads_max, 2)
    sum_parts(const __grid_constant__ pb_chain_device chain,
              const __grid_constant__ pb_chain_sums_device sums,
              const __grid_constant__ pb_chain_sums_launch task)
{
    extern __shared__ float4 shared[];
    const pb_rect core = task.in.core;
    const uint32_t columns = static_cast<uint32_t>((core.w + task.part_w - 1) / task.part_w);
    const uint32_t rows = static_cast<uint32_t>((core.h + task.part_h - 1) / task.part_h);
    const pb_block_group group = {threadIdx.x, blockDim.x};
    const pb_chain_sums_block block = {chain,
                                       sums,
                                       task.places,
                                       static_cast<unsigned char *>(task.scratch) +
                                           blockIdx.x * task.places.bytes,
                                       task.needs.plane_px,
                                       shared};
    pb_chain_sums_begin(block, task.head, group);
    pb_tile_in in = task.in;
    for (uint32_t i = blockIdx.x; i < columns * rows; i += gridDim.x) {
        const int32_t x = static_cast<int32_t>(i % columns) * task.part_w;
        const int32_t y = static_cast<int32_t>(i / columns) * task.part_h;
        in.core = {core.x + x, core.y + y, min(task.part_w, core.w - x),
                   min(task.part_h, core.h - y)};
        pb_chain_sums_part<PX, KIND>(block, in, task.out + static_cast<size_t>(i) * sums.sums.words,
                                     group);
        __syncthreads();
    }
}

template <int PX, pb_chain_kind KIND> const void *sum_parts_kernel()
{
    return reinterpret_cast<const void *>(sum_parts<PX, KIND>);
}
} // namespace pb_device
#endif
