/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_CUDA_ERRNO_H
#define WIC_CUDA_ERRNO_H
/* CUDA's errors as the three that a caller can act on: less memory, another device, another
 * process. The error is taken out of the runtime, for it is reported here and must not show up
 * elsewhere. C11 and C++17. */
#include <cuda_runtime_api.h>
#include <errno.h>

static inline int wic_cuda_errno(cudaError_t error)
{
    if (error == cudaSuccess) {
        return 0;
    }
    (void)cudaGetLastError();
    switch (error) {
    case cudaErrorMemoryAllocation:
        return -ENOMEM;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
        return -ENODEV;
    default:
        return -EIO;
    }
}
#endif
