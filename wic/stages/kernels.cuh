// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_STAGES_KERNELS_CUH
#define WIC_STAGES_KERNELS_CUH
// Parts that several strategies use: two plain kernels, a block a tile, and words in device memory.
#include "wic/stages/measure.cuh"

extern __shared__ __align__(128) unsigned char stage_shared[];

__device__ inline half *stage_memory()
{
    return reinterpret_cast<half *>(stage_shared);
}

inline uint32_t tiles_of(wic_tile_grid grid)
{
    return grid.rows * grid.cols;
}

template <class Kernel> void allow_shared(Kernel *kernel)
{
    CUDA_MUST(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TILE_SHARED));
}

// Templates, so that each file has its own.
template <int = 0>
__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS)
    plain_producers(const __grid_constant__ stages s)
{
    stage_producer(s, wic_tile_at(s.order, s.producers, blockIdx.x), stage_memory());
}

template <int = 0>
__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS)
    plain_consumers(const __grid_constant__ stages s)
{
    stage_consumer(s, wic_tile_at(s.order, s.consumers, blockIdx.x), stage_memory(),
                   [](uint32_t) {});
}

class device_words
{
  public:
    device_words() = default;
    device_words(const device_words &) = delete;
    device_words &operator=(const device_words &) = delete;
    ~device_words()
    {
        (void)cudaFree(memory_);
    }
    // Zeroed words for that number of counters.
    void allocate(uint32_t counters)
    {
        (void)cudaFree(memory_);
        CUDA_MUST(cudaMalloc(&memory_, (counters + 64) * sizeof(uint32_t)));
        CUDA_MUST(cudaMemset(memory_, 0, (counters + 64) * sizeof(uint32_t)));
        words_ = {memory_ + 64, memory_, memory_ + 32, 0, STAGE_LIMIT_NS};
    }
    // Words of the next run.
    const stage_words &next()
    {
        words_.epoch++;
        return words_;
    }
    uint32_t stopped() const
    {
        uint32_t stop = 0;
        CUDA_MUST(cudaMemcpy(&stop, words_.stop, sizeof stop, cudaMemcpyDeviceToHost));
        return stop;
    }

  private:
    uint32_t *memory_ = nullptr;
    stage_words words_ = {};
};
#endif
