// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_RESIDENT_KERNEL_CUH
#define PB_RESIDENT_KERNEL_CUH
// The resident kernel: wic's warps (wic/device/wic_device.cuh) around a chain run part by part
// (kernels/chain/chain_block.cuh).
#include "kernels/chain/chain_kernels.cuh"
#include "kernels/chain/chain_resident.cuh"

namespace pb_device
{
template <int PX, pb_chain_kind KIND, bool LINES>
__global__ void __launch_bounds__(threads_max(LINES), LINES ? 1 : 2)
    run_resident(const __grid_constant__ wic_view view, const __grid_constant__ task task)
{
    uint32_t turn = 0;
    wic_resident(view,
                 [&](const wic_piece &piece) { run_piece<PX, LINES, KIND>(task, piece, turn++); });
}

template <int PX, pb_chain_kind KIND> const void *resident_kernel()
{
    return reinterpret_cast<const void *>(run_resident<PX, KIND, KIND == pb_chain_kind::POINTWISE>);
}
} // namespace pb_device
#endif
