// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A neighbour repeats a piece of work of some 0.2 ms until it is told to stop; each block counts
// its pieces and its time, so a stop in the middle costs no precision.
#include "wic/bench/neighbours.cuh"

#include <algorithm>

struct bystander_view {
    const float4 *in;
    uint64_t *words, *mirror, *results;
};

namespace
{
constexpr unsigned threads = 512; // what registers allow beside 30 warps of a waiting kernel
constexpr size_t memory_bytes = size_t{1} << 30;
constexpr uint32_t resident_vectors = 4096; // 64 KiB, that a block reads again and again
constexpr uint64_t limit_ns = 20000000000;  // it leaves by itself when nobody stops it

__device__ uint64_t clock_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__device__ float fma_bound(float from)
{
    float a = from, b = 1.0f, c = 2.0f, d = 3.0f;
    for (int i = 0; i < 16000; i++) {
        a = fmaf(a, 0.999f, 0.5f);
        b = fmaf(b, 0.999f, 0.5f);
        c = fmaf(c, 0.999f, 0.5f);
        d = fmaf(d, 0.999f, 0.5f);
    }
    return a + b + c + d;
}

// Each block has a part of its own, all of them many times what the L2 cache holds.
__device__ float memory_bound(const float4 *in)
{
    const size_t part = memory_bytes / sizeof *in / gridDim.x;
    const float4 *from = in + blockIdx.x * part;
    float sum = 0;
#pragma unroll 8
    for (size_t i = threadIdx.x; i < part; i += threads) {
        const float4 v = __ldcs(from + i);
        sum += v.x + v.y + v.z + v.w;
    }
    return sum;
}

__device__ float l1_bound(const float4 *in)
{
    const float4 *from = in + blockIdx.x * resident_vectors;
    float sum = 0;
    for (int pass = 0; pass < 300; pass++) {
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

// Block 0 reads the host's word, the others its mirror.
__device__ bool is_over(const bystander_view &view, uint64_t since)
{
    if (blockIdx.x > 0) {
        return *static_cast<volatile uint64_t *>(view.mirror) != 0;
    }
    const bool over =
        *static_cast<volatile uint64_t *>(view.words) != 0 || clock_ns() - since > limit_ns;
    if (over) {
        *static_cast<volatile uint64_t *>(view.mirror) = 1;
    }
    return over;
}

template <neighbour_kind kind>
__global__ void __launch_bounds__(threads, 3) neighbour(const bystander_view view)
{
    __shared__ bool over;
    const uint64_t since = clock_ns();
    uint64_t pieces = 0;
    float sum = threadIdx.x;
    if (threadIdx.x == 0) {
        unsigned long long *running = reinterpret_cast<unsigned long long *>(view.mirror + 1);
        if (atomicAdd(running, 1ull) == gridDim.x - 1) {
            *static_cast<volatile uint64_t *>(view.words + 1) = 1;
        }
    }
    do {
        sum += kind == NEIGHBOUR_FMA      ? fma_bound(sum)
               : kind == NEIGHBOUR_MEMORY ? memory_bound(view.in)
                                          : l1_bound(view.in);
        pieces++;
        __syncthreads();
        if (threadIdx.x == 0) {
            over = is_over(view, since);
        }
        __syncthreads();
    } while (!over);
    if (threadIdx.x == 0) {
        view.results[2 * blockIdx.x] = pieces;
        view.results[2 * blockIdx.x + 1] = clock_ns() - since;
    }
    if (sum == 0.12345f) { // never: the work must not be optimised away
        view.results[0] = 0;
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

local_bystander::local_bystander() : blocks_(attribute(cudaDevAttrMultiProcessorCount))
{
    CUDA_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CUDA_MUST(cudaMalloc(&in_, memory_bytes));
    CUDA_MUST(cudaMemset(in_, 0, memory_bytes));
    CUDA_MUST(cudaHostAlloc(&words_, 2 * sizeof *words_, cudaHostAllocMapped));
    CUDA_MUST(cudaMalloc(&mirror_, 2 * sizeof *mirror_));
    CUDA_MUST(cudaHostAlloc(&results_, 2 * static_cast<size_t>(blocks_) * sizeof *results_,
                            cudaHostAllocMapped));
    CUDA_MUST(cudaDeviceSynchronize());
}

local_bystander::~local_bystander()
{
    cudaStreamDestroy(stream_);
    cudaFree(in_);
    cudaFree(mirror_);
    cudaFreeHost(words_);
    cudaFreeHost(results_);
}

void local_bystander::start(neighbour_kind kind)
{
    const bystander_view view = {in_, words_, mirror_, results_};
    const unsigned blocks = static_cast<unsigned>(blocks_);
    __atomic_store_n(&words_[0], uint64_t{0}, __ATOMIC_RELEASE);
    __atomic_store_n(&words_[1], uint64_t{0}, __ATOMIC_RELEASE);
    CUDA_MUST(cudaMemsetAsync(mirror_, 0, 2 * sizeof *mirror_, stream_));
    kind == NEIGHBOUR_FMA      ? neighbour<NEIGHBOUR_FMA><<<blocks, threads, 0, stream_>>>(view)
    : kind == NEIGHBOUR_MEMORY ? neighbour<NEIGHBOUR_MEMORY><<<blocks, threads, 0, stream_>>>(view)
                               : neighbour<NEIGHBOUR_L1><<<blocks, threads, 0, stream_>>>(view);
    CUDA_MUST(cudaGetLastError());
    const double limit = bench_seconds() + 2; // a link beside it has no heartbeat meanwhile
    while (__atomic_load_n(&words_[1], __ATOMIC_ACQUIRE) == 0) {
        if (bench_seconds() > limit) {
            bench_fail("there is no room for a neighbour on each multiprocessor", __LINE__);
        }
    }
}

double local_bystander::stop()
{
    __atomic_store_n(&words_[0], uint64_t{1}, __ATOMIC_RELEASE);
    CUDA_MUST(cudaStreamSynchronize(stream_));
    double speed = 0;
    for (int block = 0; block < blocks_; block++) {
        speed += 1e9 * static_cast<double>(results_[2 * block]) /
                 static_cast<double>(results_[2 * block + 1]);
    }
    return speed;
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
