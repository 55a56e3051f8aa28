/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/mem.h"
#include "pipeline/device/cuda_err.h"

#include <string.h>

int pb_mem_cuda_alloc(size_t bytes, struct pb_err *err, void **out_memory)
{
    void *memory = NULL;
    int rc = pb_cuda_pin_err(
        err, cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped), bytes,
        "tile buffers");
    if (rc < 0)
        return rc;
    memset(memory, 0, bytes);
    *out_memory = memory;
    return 0;
}

void pb_mem_cuda_free(void *memory)
{
    (void)cudaFreeHost(memory);
}

int pb_mem_pin(void *memory, size_t bytes, struct pb_err *err)
{
    return pb_cuda_pin_err(
        err, cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
        bytes, "tile buffers");
}

void pb_mem_unpin(void *memory)
{
    (void)cudaHostUnregister(memory);
}
