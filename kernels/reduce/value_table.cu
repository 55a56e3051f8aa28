// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce/value_table.cuh"
#include "wic/device/cuda_errno.h"

namespace
{
using pb_device::VALUE_FIT_THREADS;
using pb_device::VALUE_THREADS;
constexpr uint32_t BLOCKS = 256, SHARES_MAX = 512;    // thread blocks of a table and of a plane
constexpr uint32_t ROWS_EACH = 8, PLANES_MAX = 65535; // rows of a block; limit of a grid

__global__ void __launch_bounds__(VALUE_THREADS) begin(pb_value_table *table, uint32_t limit)
{
    pb_value_table_begin(table, limit, blockIdx.x, gridDim.x,
                         pb_block_group{threadIdx.x, blockDim.x});
}

__global__ void __launch_bounds__(VALUE_THREADS) rows(pb_value_planes planes, pb_value_table *table)
{
    __shared__ pb_device::value_arena arena;
    pb_value_table_rows(planes, blockIdx.y, blockIdx.x, gridDim.x, arena, table,
                        pb_block_group{threadIdx.x, blockDim.x});
}

__global__ void __launch_bounds__(VALUE_FIT_THREADS)
    fit(pb_value_table *table, pb_value_table *spare)
{
    pb_value_table_fit(table, spare, pb_block_group{threadIdx.x, blockDim.x});
}

__global__ void __launch_bounds__(VALUE_THREADS) list(pb_value_table *table, pb_value_part *parts)
{
    pb_value_table_list(table, blockIdx.x, gridDim.x, parts,
                        pb_block_group{threadIdx.x, blockDim.x});
}
} // namespace

int pb_value_table_begin_cuda(struct pb_value_table *table, uint32_t limit, void *stream)
{
    if (limit < 4 || (limit & (limit - 1)) != 0) {
        return -EINVAL;
    }
    begin<<<BLOCKS, VALUE_THREADS, 0, static_cast<cudaStream_t>(stream)>>>(table, limit);
    return wic_cuda_errno(cudaGetLastError());
}

int pb_value_table_add_cuda(struct pb_value_table *table, struct pb_value_table *spare,
                            const struct pb_value_planes *planes, void *stream)
{
    auto *const queue = static_cast<cudaStream_t>(stream);
    if (planes->n == 0 || planes->n > PLANES_MAX || planes->rows < 1 || planes->row < 0) {
        return -EINVAL;
    }
    const auto wanted = (static_cast<uint32_t>(planes->rows) + ROWS_EACH - 1) / ROWS_EACH;
    rows<<<dim3(wanted < SHARES_MAX ? wanted : SHARES_MAX, planes->n), VALUE_THREADS, 0, queue>>>(
        *planes, table);
    fit<<<1, VALUE_FIT_THREADS, 0, queue>>>(table, spare);
    return wic_cuda_errno(cudaGetLastError());
}

int pb_value_table_list_cuda(struct pb_value_table *table, uint32_t limit,
                             struct pb_value_part *parts, void *stream)
{
    if (pb_value_table_parts(limit) > VALUE_THREADS) {
        return -EINVAL;
    }
    list<<<BLOCKS, VALUE_THREADS, 0, static_cast<cudaStream_t>(stream)>>>(table, parts);
    return wic_cuda_errno(cudaGetLastError());
}
