// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The bound: one kernel with a block for each tile of both stages and no dependency. The producer's
// result must be there before; its tiles write the same values again.
#include "wic/stages/kernels.cuh"

namespace
{
__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS) both(const __grid_constant__ stages s)
{
    const uint32_t producers = s.producers.rows * s.producers.cols;
    if (blockIdx.x < producers) {
        stage_producer(s, wic_tile_at(s.order, s.producers, blockIdx.x), stage_memory());
    } else {
        stage_consumer(s, wic_tile_at(s.order, s.consumers, blockIdx.x - producers), stage_memory(),
                       [](uint32_t) {});
    }
}

class without_dependency : public stage_strategy
{
  public:
    const char *name() const override
    {
        return "free";
    }
    bool prepare(const stages &) override
    {
        allow_shared(both);
        return true;
    }
    void queue(const stages &s, cudaStream_t main, cudaStream_t) override
    {
        both<<<tiles_of(s.producers) + tiles_of(s.consumers), TILE_THREADS, TILE_SHARED, main>>>(s);
        CUDA_MUST(cudaGetLastError());
    }
};
} // namespace

std::unique_ptr<stage_strategy> make_free()
{
    return std::make_unique<without_dependency>();
}
