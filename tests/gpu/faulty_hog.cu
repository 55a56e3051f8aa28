// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/faulty_hog.h"

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <cuda_runtime.h>
#include <unistd.h>

namespace
{
__device__ uint64_t now()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void hold(uint64_t ns)
{
    const uint64_t start = now();
    while (now() - start < ns) {
        __nanosleep(1000);
    }
}

void must(cudaError_t error)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "faulty_hog: %s\n", cudaGetErrorString(error));
        _exit(71);
    }
}
} // namespace

void faulty_hog(double seconds)
{
    int device = 0, processors = 0, bytes = 0;
    cudaStream_t stream;
    const timespec settled = {0, 50000000};
    must(cudaGetDevice(&device));
    must(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    must(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    must(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    hold<<<static_cast<unsigned>(processors), 32, static_cast<size_t>(bytes), stream>>>(
        static_cast<uint64_t>(seconds * 1e9));
    must(cudaGetLastError());
    nanosleep(&settled, nullptr);
}
