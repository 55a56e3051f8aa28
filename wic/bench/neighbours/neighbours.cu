// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A neighbour is a grid of many more short blocks than fit at a time, so the device keeps all
// multiprocessors busy also where the waiting kernel takes a part of some. A few of these blocks
// are enough to saturate what the kind is bound by: less room on a multiprocessor does not make it
// slower, only what the waiting kernel takes of issue slots, caches and memory does.
#include "wic/bench/neighbours/neighbours.cuh"

#include <algorithm>

struct bystander_view {
    const float4 *in;
    unsigned long long *done; // blocks
    const uint64_t *stop;
};

namespace
{
constexpr unsigned threads = 128;
constexpr size_t memory_bytes = size_t{1} << 30;
constexpr size_t block_vectors = 16384;    // 256 KiB, that a block reads once
constexpr uint32_t resident_vectors = 256; // 4 KiB, that a block reads again and again
constexpr double work_s = 20e-3;           // of a grid, alone

__device__ float fma_bound(float from)
{
    float a = from, b = 1.0f, c = 2.0f, d = 3.0f;
    for (int i = 0; i < 4000; i++) {
        a = fmaf(a, 0.999f, 0.5f);
        b = fmaf(b, 0.999f, 0.5f);
        c = fmaf(c, 0.999f, 0.5f);
        d = fmaf(d, 0.999f, 0.5f);
    }
    return a + b + c + d;
}

// Blocks that run at the same time read many times what the L2 cache holds.
__device__ float memory_bound(const float4 *in)
{
    const float4 *from =
        in + blockIdx.x % (memory_bytes / sizeof *in / block_vectors) * block_vectors;
    float sum = 0;
#pragma unroll 8
    for (size_t i = threadIdx.x; i < block_vectors; i += threads) {
        const float4 v = __ldcs(from + i);
        sum += v.x + v.y + v.z + v.w;
    }
    return sum;
}

__device__ float l1_bound(const float4 *in)
{
    const float4 *from = in + blockIdx.x % 16 * resident_vectors; // 64 KiB of all blocks
    float sum = 0;
    for (int pass = 0; pass < 500; pass++) {
#pragma unroll
        for (uint32_t i = 0; i < resident_vectors / threads; i++) {
            float4 v; // volatile: each pass loads again, through L1
            asm volatile("ld.global.ca.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                         : "l"(from + i * threads + threadIdx.x));
            sum += v.x + v.y + v.z + v.w;
        }
    }
    return sum;
}

template <neighbour_kind kind>
__global__ void __launch_bounds__(threads) neighbour(const bystander_view view)
{
    if (*static_cast<const volatile uint64_t *>(view.stop) != 0) {
        return;
    }
    const float sum = kind == NEIGHBOUR_FMA      ? fma_bound(threadIdx.x)
                      : kind == NEIGHBOUR_MEMORY ? memory_bound(view.in)
                                                 : l1_bound(view.in);
    __syncthreads();
    // The second never holds: the work must not be optimised away.
    if (threadIdx.x == 0 || sum == 0.12345f) {
        atomicAdd(view.done, 1ull);
    }
}

int attribute(cudaDeviceAttr which)
{
    int device = 0, value = 0;
    CUDA_MUST(cudaGetDevice(&device));
    CUDA_MUST(cudaDeviceGetAttribute(&value, which, device));
    return value;
}
} // namespace

local_bystander::local_bystander()
{
    for (cudaStream_t *stream : {&stream_, &stopping_}) {
        CUDA_MUST(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    }
    CUDA_MUST(cudaEventCreate(&began_));
    CUDA_MUST(cudaEventCreate(&ended_));
    CUDA_MUST(cudaMalloc(&in_, memory_bytes));
    CUDA_MUST(cudaMemset(in_, 0, memory_bytes));
    CUDA_MUST(cudaMalloc(&device_words_, 2 * sizeof *device_words_));
    CUDA_MUST(cudaHostAlloc(&words_, 2 * sizeof *words_, cudaHostAllocDefault));
    CUDA_MUST(cudaDeviceSynchronize());
    for (unsigned &blocks : blocks_) { // as many as take work_s
        const neighbour_kind kind = static_cast<neighbour_kind>(&blocks - blocks_);
        blocks = 128 * static_cast<unsigned>(attribute(cudaDevAttrMultiProcessorCount));
        for (int i = 0; i < 2; i++) { // the first one comes to a GPU that has been idle
            start(kind);
            blocks = static_cast<unsigned>(stop() * work_s);
        }
    }
}

local_bystander::~local_bystander()
{
    cudaStreamDestroy(stream_);
    cudaStreamDestroy(stopping_);
    cudaEventDestroy(began_);
    cudaEventDestroy(ended_);
    cudaFree(in_);
    cudaFree(device_words_);
    cudaFreeHost(words_);
}

void local_bystander::start(neighbour_kind kind)
{
    const bystander_view view = {in_, reinterpret_cast<unsigned long long *>(device_words_),
                                 device_words_ + 1};
    const unsigned blocks = blocks_[kind];
    words_[0] = words_[1] = 0;
    CUDA_MUST(cudaMemcpyAsync(device_words_, words_, 2 * sizeof *words_, cudaMemcpyHostToDevice,
                              stream_));
    CUDA_MUST(cudaEventRecord(began_, stream_));
    kind == NEIGHBOUR_FMA      ? neighbour<NEIGHBOUR_FMA><<<blocks, threads, 0, stream_>>>(view)
    : kind == NEIGHBOUR_MEMORY ? neighbour<NEIGHBOUR_MEMORY><<<blocks, threads, 0, stream_>>>(view)
                               : neighbour<NEIGHBOUR_L1><<<blocks, threads, 0, stream_>>>(view);
    CUDA_MUST(cudaGetLastError());
    CUDA_MUST(cudaEventRecord(ended_, stream_));
    CUDA_MUST(
        cudaMemcpyAsync(words_, device_words_, sizeof *words_, cudaMemcpyDeviceToHost, stream_));
}

bool local_bystander::over()
{
    const cudaError_t error = cudaEventQuery(ended_);
    if (error != cudaErrorNotReady) {
        CUDA_MUST(error);
    }
    return !error;
}

double local_bystander::stop()
{
    if (!over()) {
        words_[1] = 1;
        CUDA_MUST(cudaMemcpyAsync(device_words_ + 1, words_ + 1, sizeof *words_,
                                  cudaMemcpyHostToDevice, stopping_));
        CUDA_MUST(cudaStreamSynchronize(stopping_));
    }
    float ms = 0;
    CUDA_MUST(cudaStreamSynchronize(stream_));
    CUDA_MUST(cudaEventElapsedTime(&ms, began_, ended_));
    return 1e3 * static_cast<double>(words_[0]) / ms;
}

double speed_beside_idle(bystander &other, neighbour_kind kind, strategy *way)
{
    constexpr double pause_s = 1e-4; // between two questions whether it is done
    const double limit = bench_seconds() + bystander_limit_s;
    other.start(kind);
    do {
        for (const double end = bench_seconds() + pause_s; bench_seconds() < end;) {
            if (way) {
                way->poll();
            }
        }
    } while (bench_seconds() < limit && !other.over());
    return other.stop();
}

bench_room room_beside(const void *kernel, const wic_transfer_plan &plan)
{
    cudaFuncAttributes found;
    CUDA_MUST(cudaFuncGetAttributes(&found, kernel));
    const double processors = attribute(cudaDevAttrMultiProcessorCount);
    const double each = std::max(1.0, plan.blocks / processors); // blocks of a multiprocessor
    // A multiple of 8 registers a thread, from four parts among which the warps are dealt out.
    const double block_threads = (32 * (plan.warps + WIC_SERVICE_WARPS) + 127) / 128 * 128;
    const double registers = (found.numRegs + 7) / 8 * 8 * block_threads;
    const double shared = wic_transfer_plan_shared_bytes(&plan) + 1024.0 + found.sharedSizeBytes;
    return {100 - 100 * each * registers / attribute(cudaDevAttrMaxRegistersPerMultiprocessor),
            100 - 100 * each * shared / attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
            100 * std::max(0.0, 1 - plan.blocks / processors)};
}
