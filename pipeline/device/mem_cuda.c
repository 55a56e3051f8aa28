/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/mem.h"
#include "pipeline/device/cuda_err.h"

#include <stdlib.h>
#include <string.h>

/* Managed buffers stay in the host's memory and the GPU reads and writes them over the link: a page
 * that moves costs 0.6 us. */
static void keep_at_host(void *memory, size_t bytes)
{
    struct cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
    if (cudaGetDevice(&device.id) != cudaSuccess ||
        cudaMemAdvise(memory, bytes, cudaMemAdviseSetPreferredLocation, host) != cudaSuccess ||
        cudaMemAdvise(memory, bytes, cudaMemAdviseSetAccessedBy, device) != cudaSuccess)
        (void)cudaGetLastError(); /* no advice, slower */
}

int pb_mem_cuda_alloc(enum pb_mem_kind kind, size_t bytes, struct pb_err *err, void **out_memory)
{
    void *memory = NULL;
    cudaError_t rc =
        kind == PB_MEM_PINNED
            ? cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped)
            : cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal);
    if (rc != cudaSuccess)
        return pb_cuda_err(err, rc,
                           kind == PB_MEM_PINNED ? "pinning tile buffers"
                                                 : "allocating managed tile buffers");
    if (kind == PB_MEM_MANAGED)
        keep_at_host(memory, bytes);
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
    return pb_cuda_err(
        err, cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
        "pinning tile buffers");
}

void pb_mem_unpin(void *memory)
{
    (void)cudaHostUnregister(memory);
}
