// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of unpredict.cuh: a warp a row, one kernel a size of samples.
#include "kernels/codec/unpredict.cuh"
#include "wic/device/cuda_errno.h"

namespace
{
constexpr uint32_t WARPS = 8;

// The rows of all blocks, `each` thread blocks a block.
template <class T, bool FLOATS>
__global__ void __launch_bounds__(32 * WARPS)
    unpredict(const __grid_constant__ pb_unpredict_form form, const pb_unpredict_block *blocks,
              uint32_t each)
{
    const pb_unpredict_block block = blocks[blockIdx.x / each];
    const uint32_t y = blockIdx.x % each * WARPS + threadIdx.x / 32;
    if (y < block.h) {
        pb_unpredict::run<T, FLOATS>(form, block, y);
    }
}

template <class T, bool FLOATS>
__global__ void __launch_bounds__(32 * WARPS)
    make_mask(const __grid_constant__ pb_unpredict_form form, const pb_unpredict_block *blocks,
              uint32_t each)
{
    const pb_unpredict_block block = blocks[blockIdx.x / each];
    const uint32_t y = blockIdx.x % each * WARPS + threadIdx.x / 32;
    if (y < block.h) {
        pb_unpredict::run_mask<T, FLOATS>(form, block, y);
    }
}

__global__ void __launch_bounds__(32 * WARPS)
    spread_bits(const __grid_constant__ pb_unpredict_form form, const pb_unpredict_block *blocks,
                uint32_t each)
{
    const pb_unpredict_block block = blocks[blockIdx.x / each];
    const uint32_t y = blockIdx.x % each * WARPS + threadIdx.x / 32;
    if (y < block.h) {
        pb_unpredict::run_bits(form, block, y);
    }
}

__global__ void __launch_bounds__(32 * WARPS) copy_rects(const pb_rect_copy *copies, uint32_t each)
{
    const pb_rect_copy copy = copies[blockIdx.x / each];
    const uint32_t y = blockIdx.x % each * WARPS + threadIdx.x / 32;
    if (y < copy.h) {
        pb_unpredict::copy_row(copy, y);
    }
}

// Thread blocks of a block or rectangle; 0: there are too many in all.
uint32_t blocks_each(uint32_t n, uint32_t rows_most)
{
    const uint32_t each = (rows_most + WARPS - 1) / WARPS;
    return static_cast<uint64_t>(each) * n <= 0x7fffffffu ? each : 0;
}

typedef void (*kernel)(pb_unpredict_form, const pb_unpredict_block *, uint32_t);

kernel mask_kernel_of(const pb_unpredict_form *form)
{
    const bool floats = form->predictor == 3;
    switch (form->sample_bytes) {
    case 1:
        return floats ? nullptr : make_mask<uint8_t, false>;
    case 2:
        return floats ? nullptr : make_mask<uint16_t, false>;
    case 4:
        return floats ? make_mask<uint32_t, true> : make_mask<uint32_t, false>;
    case 8:
        return floats ? make_mask<uint64_t, true> : make_mask<uint64_t, false>;
    default:
        return nullptr;
    }
}

kernel kernel_of(const pb_unpredict_form *form)
{
    if (form->as == PB_UNPREDICT_BITS) {
        return spread_bits;
    }
    if (form->as == PB_UNPREDICT_MASK) {
        return mask_kernel_of(form);
    }
    if (form->predictor == 3) {
        return form->sample_bytes == 4   ? unpredict<uint32_t, true>
               : form->sample_bytes == 8 ? unpredict<uint64_t, true>
                                         : nullptr;
    }
    switch (form->sample_bytes) {
    case 1:
        return unpredict<uint8_t, false>;
    case 2:
        return unpredict<uint16_t, false>;
    case 4:
        return unpredict<uint32_t, false>;
    case 8:
        return unpredict<uint64_t, false>;
    default:
        return nullptr;
    }
}
} // namespace

int pb_unpredict_cuda(const struct pb_unpredict_form *form, const struct pb_unpredict_block *blocks,
                      uint32_t n, uint32_t rows_most, void *stream)
{
    const kernel run = kernel_of(form);
    if (n == 0 || rows_most == 0) {
        return 0;
    }
    const uint32_t each = blocks_each(n, rows_most);
    if (run == nullptr || each == 0 || form->n_planes > PB_UNPREDICT_PLANES) {
        return -EINVAL;
    }
    run<<<each * n, 32 * WARPS, 0, static_cast<cudaStream_t>(stream)>>>(*form, blocks, each);
    return wic_cuda_errno(cudaGetLastError()) < 0 ? -EIO : 0;
}

int pb_copy_rects_cuda(const struct pb_rect_copy *copies, uint32_t n, uint32_t rows_most,
                       void *stream)
{
    if (n == 0 || rows_most == 0) {
        return 0;
    }
    const uint32_t each = blocks_each(n, rows_most);
    if (each == 0) {
        return -EINVAL;
    }
    copy_rects<<<each * n, 32 * WARPS, 0, static_cast<cudaStream_t>(stream)>>>(copies, each);
    return wic_cuda_errno(cudaGetLastError()) < 0 ? -EIO : 0;
}
