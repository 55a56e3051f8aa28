// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// One kernel a chunk, which loads from and stores to pinned memory and says by a store there when
// it is done. `launch`: launched when the chunk has arrived. `wait-value`: queued before, behind a
// wait of its stream for the host's counter of arrivals.
#include "wic/bench/base/ndvi.cuh"
#include "wic/bench/strategies/strategies.cuh"

#include <algorithm>
#include <cuda.h>

namespace
{
constexpr uint32_t block_units = 4 * line_units;
constexpr uint64_t ahead_max = 256;      // kernels queued and not done
constexpr uint64_t waiting_max = 64;     // queued before their chunk has arrived
constexpr uint64_t all_there = 1u << 30; // releases every wait; counters are compared as signed

struct chunk_job {
    const unsigned char *in;
    unsigned char *out;
    uint64_t units, number;
    uint64_t *done;     // pinned
    uint32_t *finished; // blocks, in device memory
};

__global__ void __launch_bounds__(256) ndvi_chunk_in_place(const chunk_job job)
{
    for (uint64_t at = blockIdx.x * uint64_t{block_units}; at < job.units;
         at += gridDim.x * uint64_t{block_units}) {
        const uint32_t units = static_cast<uint32_t>(min(uint64_t{block_units}, job.units - at));
        ndvi_lines(job.in + at * in_unit, job.out + at * out_unit, units, threadIdx.x, blockDim.x);
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(job.finished, 1) == gridDim.x - 1) {
        *job.finished = 0;
        __threadfence_system();
        *static_cast<volatile uint64_t *>(job.done) = job.number + 1;
    }
}

class launches : public strategy
{
  public:
    launches(const bench_pool &pool, const bench_shape &shape, bool wait)
        : strategy(pool.slots), pool_(pool), wait_(wait), lanes_(shape.lanes)
    {
        for (cudaStream_t &stream : lanes_) {
            CUDA_MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        }
        CUDA_MUST(cudaHostAlloc(&words_, (slots + 1) * sizeof *words_, cudaHostAllocMapped));
        std::fill(words_, words_ + slots + 1, uint64_t{0});
        CUDA_MUST(cudaMalloc(&finished_, slots * sizeof *finished_));
        CUDA_MUST(cudaMemset(finished_, 0, slots * sizeof *finished_));
        CUDA_MUST(cudaDeviceSynchronize());
        if (wait_) {
            void *entry = nullptr;
            cudaDriverEntryPointQueryResult found;
            CUDA_MUST(cudaGetDriverEntryPointByVersion("cuStreamWaitValue64", &entry, 12000,
                                                       cudaEnableDefault, &found));
            wait_value_ = reinterpret_cast<decltype(&cuStreamWaitValue64)>(entry);
            queue();
        }
    }

    ~launches() override
    {
        publish(all_there);
        for (cudaStream_t stream : lanes_) {
            cudaStreamSynchronize(stream);
            cudaStreamDestroy(stream);
        }
        cudaFreeHost(words_);
        cudaFree(finished_);
    }

    void submit(uint64_t end) override
    {
        arrived_ = end;
        publish(end);
        queue();
    }

    uint64_t poll() override
    {
        while (done_ < begun_ &&
               __atomic_load_n(&words_[1 + done_ % slots], __ATOMIC_ACQUIRE) == done_ + 1) {
            done_++;
        }
        queue();
        return done_;
    }

  private:
    void publish(uint64_t end)
    {
        __atomic_store_n(&words_[0], end, __ATOMIC_RELEASE);
    }

    void queue()
    {
        const uint64_t early = wait_ ? waiting_max : 0;
        const uint64_t end = std::min({arrived_ + early, done_ + ahead_max, done_ + slots});
        for (; begun_ < end; begun_++) {
            const cudaStream_t stream = lanes_[begun_ % lanes_.size()];
            if (wait_ && wait_value_(stream, reinterpret_cast<CUdeviceptr>(words_), begun_ + 1,
                                     CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) {
                bench_fail("a stream cannot wait for a value", __LINE__);
            }
            const uint64_t slot = begun_ % slots, units = pool_.chunk / in_unit;
            const unsigned blocks = static_cast<unsigned>(
                std::min<uint64_t>((units + block_units - 1) / block_units, 528));
            ndvi_chunk_in_place<<<blocks, 256, 0, stream>>>(
                {pool_.in + slot * pool_.in_stride, pool_.out + slot * pool_.out_stride, units,
                 begun_, &words_[1 + slot], &finished_[slot]});
            CUDA_MUST(cudaGetLastError());
        }
    }

    const bench_pool &pool_;
    const bool wait_;
    std::vector<cudaStream_t> lanes_;
    uint64_t *words_ = nullptr; // pinned: arrivals, then one by slot: number + 1 of its last chunk
    uint32_t *finished_ = nullptr;
    decltype(&cuStreamWaitValue64) wait_value_ = nullptr;
    uint64_t arrived_ = 0, begun_ = 0, done_ = 0;
};
} // namespace

std::unique_ptr<strategy> make_launch(const bench_pool &pool, const bench_shape &shape)
{
    return std::make_unique<launches>(pool, shape, false);
}

std::unique_ptr<strategy> make_wait_value(const bench_pool &pool, const bench_shape &shape)
{
    return std::make_unique<launches>(pool, shape, true);
}
