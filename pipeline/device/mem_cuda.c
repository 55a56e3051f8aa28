/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/mem.h"
#include "pipeline/device/cuda_err.h"

#include <stdlib.h>
#include <string.h>

int pb_mem_cuda_alloc(enum pb_mem_kind kind, size_t bytes, struct pb_err *err, void **out_memory)
{
    void *memory = NULL;
    cudaError_t rc = kind == PB_MEM_PINNED ? cudaHostAlloc(&memory, bytes, cudaHostAllocPortable)
                                           : cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal);
    if (rc != cudaSuccess)
        return pb_cuda_err(err, rc,
                           kind == PB_MEM_PINNED ? "pinning tile buffers"
                                                 : "allocating managed tile buffers");
    memset(memory, 0, bytes);
    *out_memory = memory;
    return 0;
}

void pb_mem_cuda_free(enum pb_mem_kind kind, void *memory)
{
    if (kind == PB_MEM_PINNED)
        (void)cudaFreeHost(memory);
    else
        (void)cudaFree(memory);
}

int pb_mem_pin(void *memory, size_t bytes, struct pb_err *err)
{
    return pb_cuda_err(err, cudaHostRegister(memory, bytes, cudaHostRegisterPortable),
                       "pinning tile buffers");
}

void pb_mem_unpin(void *memory)
{
    (void)cudaHostUnregister(memory);
}
