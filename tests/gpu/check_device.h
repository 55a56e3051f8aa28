/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHECK_DEVICE_H
#define PB_CHECK_DEVICE_H
/* Device memory in programs of tests/gpu, which end when CUDA fails. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    (void)fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}
#define MUST(call) must(call, #call)

/* A copy of it; host NULL: not filled. */
static inline void *on_device(const void *host, size_t bytes)
{
    void *memory = NULL;
    MUST(cudaMalloc(&memory, bytes));
    if (host != NULL)
        MUST(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
    return memory;
}

static inline void *on_host(const void *device, size_t bytes)
{
    void *memory = malloc(bytes + 1);
    if (memory == NULL)
        abort();
    MUST(cudaMemcpy(memory, device, bytes, cudaMemcpyDeviceToHost));
    return memory;
}
#endif
