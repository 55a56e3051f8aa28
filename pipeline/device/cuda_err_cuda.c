/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/cuda_err.h"
#include "pipeline/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static enum pb_code code_of(cudaError_t rc)
{
    switch (rc) {
    case cudaErrorMemoryAllocation: /* the plan fits: other programs have the memory */
        return PB_E_DEVICE_BUSY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
        return PB_E_DEVICE_MISSING;
    /* After these errors every further call of this process returns the same error
     * (driver_types.h: "the process must be terminated and relaunched"). */
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    /* Hardware that failed at run time, a context that was reset, and the driver's code for a GPU
     * that left the bus. */
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
        return PB_E_DEVICE_LOST;
    default:
        return PB_E_DEVICE_FAILED;
    }
}

int pb_cuda_err(struct pb_err *err, cudaError_t rc, const char *what)
{
    if (rc == cudaSuccess)
        return 0;
    return pb_fail(err, code_of(rc), "the GPU failed while %s: %s (%s)", what,
                   cudaGetErrorString(rc), cudaGetErrorName(rc));
}

int pb_cuda_pin_err(struct pb_err *err, cudaError_t rc, size_t bytes, const char *what)
{
    char text[120];
    if (rc == cudaErrorMemoryAllocation)
        return pb_fail(err, PB_E_DEVICE_BUSY,
                       "the host cannot pin %zu bytes of its memory for %s: %s (%s)", bytes, what,
                       cudaGetErrorString(rc), cudaGetErrorName(rc));
    (void)snprintf(text, sizeof text, "pinning memory of the host for %s", what);
    return pb_cuda_err(err, rc, text);
}

int pb_cuda_rc(struct pb_err *err, int rc, const char *what)
{
    if (rc >= 0)
        return 0;
    cudaError_t last = cudaGetLastError();
    if (last != cudaSuccess)
        return pb_cuda_err(err, last, what);
    return pb_fail(err, rc == -ENOMEM ? PB_E_DEVICE_BUSY : PB_E_DEVICE_FAILED,
                   "the GPU failed while %s: %s", what, strerror(-rc));
}

int pb_device_use(int32_t index, struct pb_err *err)
{
    return pb_cuda_err(err, cudaSetDevice(index), "selecting the device");
}
