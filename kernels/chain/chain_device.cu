// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a chain go to the device in one copy.
#include "kernels/chain/chain_device.h"
#include "kernels/launch.cuh"

#include <cstdlib>

int pb_chain_device_create(const struct pb_chain *chain, struct pb_chain_device *out_device)
{
    const size_t bytes = pb_chain_device_bytes(chain);
    void *const host = calloc(1, bytes);
    pb_chain_device device = {};
    void *memory = nullptr;

    if (!host) {
        return -ENOMEM;
    }
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess) {
        device = pb_chain_device_lay(chain, memory, host);
        error = cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice);
    }
    if (error == cudaSuccess) {
        // From pageable memory cudaMemcpy returns once the bytes are staged, and the streams that
        // run the chain do not wait for the default stream.
        error = cudaStreamSynchronize(cudaStreamLegacy);
    }
    free(host);
    if (error != cudaSuccess) {
        (void)cudaFree(memory);
        (void)cudaGetLastError(); // it is reported here and must not show up elsewhere
        return wic_cuda_errno(error);
    }
    *out_device = device;
    return 0;
}

void pb_chain_device_destroy(struct pb_chain_device *device)
{
    if (device) {
        (void)cudaFree(device->memory);
        *device = {};
    }
}
