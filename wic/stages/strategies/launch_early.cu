// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Programmatic dependent launch (sm_90): blocks of the consumer start in the room that the last
// wave of the producer leaves, load their weights, and wait until the whole producer is done. This
// hides the launch and the start of blocks, not the idle room of a wave.
#include "wic/stages/kernels.cuh"

namespace
{
__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS) first(const __grid_constant__ stages s)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    stage_producer(s, wic_tile_at(s.order, s.producers, blockIdx.x), stage_memory());
}

__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS)
    second(const __grid_constant__ stages s)
{
    stage_consumer(s, wic_tile_at(s.order, s.consumers, blockIdx.x), stage_memory(),
                   [&s](uint32_t step) {
                       if (step == 0 && s.mistake != STAGE_EARLY) {
                           asm volatile("griddepcontrol.wait;" ::: "memory");
                       }
                   });
}

class launched_early : public stage_strategy
{
  public:
    const char *name() const override
    {
        return "launch-early";
    }
    bool prepare(const stages &) override
    {
        allow_shared(first);
        allow_shared(second);
        return true;
    }
    void queue(const stages &s, cudaStream_t main, cudaStream_t) override
    {
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(tiles_of(s.consumers));
        config.blockDim = dim3(TILE_THREADS);
        config.dynamicSmemBytes = TILE_SHARED;
        config.stream = main;
        config.attrs = &attribute;
        config.numAttrs = 1;
        first<<<tiles_of(s.producers), TILE_THREADS, TILE_SHARED, main>>>(s);
        CUDA_MUST(cudaGetLastError());
        CUDA_MUST(cudaLaunchKernelEx(&config, second, s));
    }
};
} // namespace

std::unique_ptr<stage_strategy> make_launch_early()
{
    return std::make_unique<launched_early>();
}
