// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Flags and data in managed memory: one thread of each block spins on the flag of the block's next
// piece, and pages migrate by faults. What arrives in a slot of the pool is written to a managed
// slot here, as a producer would write it there; that copy is part of the time.
#include "wic/bench/base/ndvi.cuh"
#include "wic/bench/strategies/strategies.cuh"

#include <algorithm>
#include <cstring>

namespace
{
constexpr size_t managed_max = size_t{256} << 20; // of input
constexpr uint64_t slots_max = 64;                // a page fault a flag: more are not needed
constexpr uint64_t silence_ns = 10000000000;      // without a chunk for so long, the kernel leaves
constexpr uint32_t piece_bytes = 16384;

struct managed_view {
    const unsigned char *in;
    unsigned char *out;
    uint64_t in_stride, out_stride, slots;
    uint32_t pieces, piece;     // of a chunk; bytes
    uint64_t *published, *done; // managed, by slot: number + 1 of the chunk
    uint32_t *finished;         // device memory, by slot: pieces
    const uint64_t *leave;      // pinned
};

__device__ uint64_t clock_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// By one thread. False: leave.
__device__ bool spin(const managed_view &view, uint64_t chunk)
{
    const volatile uint64_t *flag = &view.published[chunk % view.slots];
    const volatile uint64_t *leave = view.leave;
    const uint64_t since = clock_ns();
    for (uint32_t looks = 1; *flag != chunk + 1; looks++) {
        if (looks % 64 == 0 && (*leave || clock_ns() - since > silence_ns)) {
            return false;
        }
    }
    __threadfence_system();
    return true;
}

__global__ void __launch_bounds__(1024) ndvi_managed(const managed_view view)
{
    __shared__ bool go;
    for (uint64_t i = blockIdx.x;; i += gridDim.x) {
        const uint64_t chunk = i / view.pieces, slot = chunk % view.slots, at = i % view.pieces;
        if (threadIdx.x == 0) {
            go = spin(view, chunk);
        }
        __syncthreads();
        if (!go) {
            return;
        }
        ndvi_lines(view.in + slot * view.in_stride + at * view.piece,
                   view.out + slot * view.out_stride + at * view.piece / in_unit * out_unit,
                   view.piece / in_unit, threadIdx.x, blockDim.x);
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0 && atomicAdd(&view.finished[slot], 1) == view.pieces - 1) {
            view.finished[slot] = 0;
            __threadfence_system();
            *static_cast<volatile uint64_t *>(&view.done[slot]) = chunk + 1;
        }
    }
}

class managed : public strategy
{
  public:
    managed(const bench_pool &pool, const bench_shape &shape)
        : strategy(std::clamp<uint64_t>(managed_max / pool.chunk, 1,
                                        std::min<uint64_t>(slots_max, pool.slots))),
          pool_(pool)
    {
        view_.in_stride = pool.in_stride;
        view_.out_stride = pool.out_stride;
        view_.slots = slots;
        view_.piece = pool.chunk % piece_bytes == 0 ? piece_bytes : line_in;
        view_.pieces = static_cast<uint32_t>(pool.chunk / view_.piece);
        CUDA_MUST(cudaMallocManaged(&in_, slots * pool.in_stride));
        CUDA_MUST(cudaMallocManaged(&view_.out, slots * pool.out_stride));
        CUDA_MUST(cudaMallocManaged(&view_.published, slots * sizeof(uint64_t)));
        CUDA_MUST(cudaMallocManaged(&view_.done, slots * sizeof(uint64_t)));
        CUDA_MUST(cudaMalloc(&view_.finished, slots * sizeof(uint32_t)));
        CUDA_MUST(cudaMemset(view_.finished, 0, slots * sizeof(uint32_t)));
        CUDA_MUST(cudaHostAlloc(&leave_, sizeof *leave_, cudaHostAllocMapped));
        CUDA_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CUDA_MUST(cudaDeviceSynchronize());
        *leave_ = 0;
        view_.in = in_;
        view_.leave = leave_;
        std::fill(view_.published, view_.published + slots, uint64_t{0});
        std::fill(view_.done, view_.done + slots, uint64_t{0});
        ndvi_managed<<<shape.plan.blocks, 32 * shape.plan.warps, 0, stream_>>>(view_);
        CUDA_MUST(cudaGetLastError());
    }

    ~managed() override
    {
        leave_ms();
        cudaStreamDestroy(stream_);
        cudaFree(in_);
        cudaFree(view_.out);
        cudaFree(view_.published);
        cudaFree(view_.done);
        cudaFree(view_.finished);
        cudaFreeHost(leave_);
    }

    void submit(uint64_t end) override
    {
        for (; next_ < end; next_++) {
            const uint64_t slot = next_ % slots;
            memcpy(in_ + slot * pool_.in_stride, pool_.in + slot * pool_.in_stride, pool_.chunk);
            __atomic_store_n(&view_.published[slot], next_ + 1, __ATOMIC_RELEASE);
        }
    }

    uint64_t poll() override
    {
        if (done_ < next_ &&
            __atomic_load_n(&view_.done[done_ % slots], __ATOMIC_ACQUIRE) == done_ + 1) {
            done_++;
        }
        return done_;
    }

    double leave_ms() override
    {
        const double start = bench_seconds();
        __atomic_store_n(leave_, uint64_t{1}, __ATOMIC_RELEASE);
        CUDA_MUST(cudaStreamSynchronize(stream_));
        return 1e3 * (bench_seconds() - start);
    }

    const unsigned char *results(const bench_pool &pool, uint32_t slot) const override
    {
        return view_.out + slot * pool.out_stride;
    }

  private:
    const bench_pool &pool_;
    managed_view view_ = {};
    unsigned char *in_ = nullptr;
    uint64_t *leave_ = nullptr;
    cudaStream_t stream_;
    uint64_t next_ = 0, done_ = 0;
};
} // namespace

std::unique_ptr<strategy> make_managed(const bench_pool &pool, const bench_shape &shape)
{
    return std::make_unique<managed>(pool, shape);
}
