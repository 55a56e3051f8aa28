// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_LAUNCH_CUH
#define PB_LAUNCH_CUH
// What every launcher shares: how many blocks keep the current device busy.
#include "wic/device/cuda_errno.h"
#include <cuda_runtime.h>

// Blocks of a grid-stride kernel: one for each `per_block` of `items`, but no more than the device
// holds about twice over. 0 when the device does not answer.
inline unsigned pb_cuda_blocks(size_t items, size_t per_block)
{
    int device = 0, processors = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) !=
            cudaSuccess) {
        return 0;
    }
    const size_t wanted = (items + per_block - 1) / per_block;
    const size_t most = static_cast<size_t>(processors) * 32;
    return static_cast<unsigned>(wanted < most ? wanted : most);
}
#endif
