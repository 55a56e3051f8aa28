// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The cost of waiting for other kernels: a resident kernel without chunks has one block on each
// multiprocessor, and so has a compute kernel; measures how much longer the latter takes than
// alone. (Some 10 ms, for a launch beside another kernel takes 20 us longer than alone, whatever
// that one does.)
#include "wic/bench/bench.cuh"

#include <algorithm>
#include <vector>

namespace
{
constexpr unsigned threads = 512; // what registers allow beside 30 warps of a waiting kernel
constexpr int repeats = 9;

__global__ void __launch_bounds__(threads, 2) fma_bound(float *out, int rounds)
{
    float a = threadIdx.x, b = 1.0f, c = 2.0f, d = 3.0f;
    for (int i = 0; i < rounds; i++) {
        a = fmaf(a, 0.999f, 0.5f);
        b = fmaf(b, 0.999f, 0.5f);
        c = fmaf(c, 0.999f, 0.5f);
        d = fmaf(d, 0.999f, 0.5f);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

__global__ void __launch_bounds__(threads, 2)
    memory_bound(const float4 *in, size_t n, float *out, int rounds)
{
    float sum = 0;
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (int round = 0; round < rounds; round++) {
        for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
            const float4 v = __ldcs(in + i);
            sum += v.x + v.y + v.z + v.w;
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

class bystander
{
  public:
    explicit bystander(int blocks) : blocks_(blocks)
    {
        CUDA_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CUDA_MUST(cudaEventCreate(&from_));
        CUDA_MUST(cudaEventCreate(&to_));
        CUDA_MUST(cudaMalloc(&in_, bytes));
        CUDA_MUST(cudaMemset(in_, 0, bytes));
        CUDA_MUST(cudaMalloc(&out_, blocks * threads * sizeof(float)));
        CUDA_MUST(cudaDeviceSynchronize());
    }

    ~bystander()
    {
        cudaFree(in_);
        cudaFree(out_);
        cudaStreamDestroy(stream_);
        cudaEventDestroy(from_);
        cudaEventDestroy(to_);
    }

    // Milliseconds, the median. A link beats meanwhile on its own.
    neighbours measure()
    {
        return {median([&] { fma_bound<<<blocks_, threads, 0, stream_>>>(out_, 800000); }),
                median([&] {
                    memory_bound<<<blocks_, threads, 0, stream_>>>(in_, bytes / sizeof(float4),
                                                                   out_, 40);
                })};
    }

  private:
    template <class Launch> double median(Launch launch)
    {
        std::vector<float> ms(repeats);
        for (int i = -1; i < repeats; i++) { // the first one is to warm up
            CUDA_MUST(cudaEventRecord(from_, stream_));
            launch();
            CUDA_MUST(cudaGetLastError());
            CUDA_MUST(cudaEventRecord(to_, stream_));
            const double limit = bench_seconds() + 4;
            while (cudaEventQuery(to_) == cudaErrorNotReady && bench_seconds() < limit) {
            }
            float took = 4000; // gives up: the link would miss its beat
            if (cudaEventQuery(to_) == cudaSuccess) {
                CUDA_MUST(cudaEventElapsedTime(&took, from_, to_));
            }
            ms[std::max(i, 0)] = took;
            if (took > 400) {
                return took; // so slow that one is enough
            }
        }
        std::sort(ms.begin(), ms.end());
        return ms[repeats / 2];
    }

    static constexpr size_t bytes = size_t{1} << 30;
    int blocks_;
    cudaStream_t stream_;
    cudaEvent_t from_, to_;
    float4 *in_;
    float *out_;
};

// Registers that a block of so many threads takes of a multiprocessor: a multiple of 8 a thread,
// from four parts of equal size, among which its warps are dealt out.
unsigned registers(const void *kernel, unsigned block)
{
    cudaFuncAttributes found;
    CUDA_MUST(cudaFuncGetAttributes(&found, kernel));
    return (static_cast<unsigned>(found.numRegs) + 7) / 8 * 8 * ((block + 127) / 128 * 128);
}

int attribute(cudaDeviceAttr which)
{
    int device = 0, value = 0;
    CUDA_MUST(cudaGetDevice(&device));
    CUDA_MUST(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

// One block of each kind on a multiprocessor. Shared memory is the waiters' alone.
bool fit_together(const void *waiting, unsigned waiting_threads)
{
    const unsigned most =
        std::max(registers(reinterpret_cast<const void *>(fma_bound), threads),
                 registers(reinterpret_cast<const void *>(memory_bound), threads));
    const auto limit = [](cudaDeviceAttr which) { return static_cast<unsigned>(attribute(which)); };
    return waiting_threads + threads <= limit(cudaDevAttrMaxThreadsPerMultiProcessor) &&
           registers(waiting, waiting_threads) + most <=
               limit(cudaDevAttrMaxRegistersPerMultiprocessor);
}
} // namespace

bool measure_neighbours(wait_kind kind, const bench_pool &pool, uint32_t waiting_warps,
                        neighbours *out)
{
    if (!fit_together(resident_kernel(kind), 32 * (waiting_warps + WIC_SERVICE_WARPS))) {
        return false;
    }
    const int processors = attribute(cudaDevAttrMultiProcessorCount);
    bystander other(processors);
    const neighbours alone = other.measure();
    wic_transfer_plan plan = {};
    plan.in_unit = in_unit;
    plan.out_unit = out_unit;
    plan.piece_units = 4096;
    plan.in_piece = 16384;
    plan.out_piece = 8192;
    plan.pieces = static_cast<uint32_t>((pool.chunk + plan.in_piece - 1) / plan.in_piece);
    plan.depth = 2;
    plan.blocks = static_cast<uint32_t>(processors);
    plan.pulls = 16;
    plan.warps = waiting_warps;
    std::unique_ptr<strategy> waiting = make_resident(kind, pool, plan);
    if (!waiting) {
        return false;
    }
    const neighbours beside = other.measure();
    waiting->leave_ms();
    *out = {beside.fma / alone.fma, beside.memory / alone.memory};
    return true;
}
