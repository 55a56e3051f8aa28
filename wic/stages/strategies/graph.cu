// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A CUDA graph of the two kernels, made and uploaded before the run: one launch for both.
#include "wic/stages/kernels.cuh"

namespace
{
class in_graph : public stage_strategy
{
  public:
    ~in_graph() override
    {
        destroy();
    }
    const char *name() const override
    {
        return "graph";
    }
    bool prepare(const stages &s) override
    {
        destroy();
        allow_shared(plain_producers<>);
        allow_shared(plain_consumers<>);
        cudaGraph_t graph;
        cudaGraphNode_t first, second;
        CUDA_MUST(cudaGraphCreate(&graph, 0));
        add(graph, &first, plain_producers<>, tiles_of(s.producers), s);
        add(graph, &second, plain_consumers<>, tiles_of(s.consumers), s);
        if (s.mistake != STAGE_EARLY) {
#if CUDART_VERSION >= 13000
            CUDA_MUST(cudaGraphAddDependencies(graph, &first, &second, nullptr, 1));
#else
            CUDA_MUST(cudaGraphAddDependencies(graph, &first, &second, 1));
#endif
        }
        CUDA_MUST(cudaGraphInstantiate(&exec_, graph, 0));
        CUDA_MUST(cudaGraphDestroy(graph));
        CUDA_MUST(cudaGraphUpload(exec_, nullptr));
        CUDA_MUST(cudaDeviceSynchronize());
        return true;
    }
    void queue(const stages &, cudaStream_t main, cudaStream_t) override
    {
        CUDA_MUST(cudaGraphLaunch(exec_, main));
    }

  private:
    void destroy()
    {
        if (exec_) {
            CUDA_MUST(cudaGraphExecDestroy(exec_));
            exec_ = nullptr;
        }
    }
    static void add(cudaGraph_t graph, cudaGraphNode_t *node, void (*kernel)(stages),
                    uint32_t tiles, const stages &s)
    {
        stages own = s;
        void *args[] = {&own};
        cudaKernelNodeParams params = {};
        params.func = reinterpret_cast<void *>(kernel);
        params.gridDim = dim3(tiles);
        params.blockDim = dim3(TILE_THREADS);
        params.sharedMemBytes = TILE_SHARED;
        params.kernelParams = args;
        CUDA_MUST(cudaGraphAddKernelNode(node, graph, nullptr, 0, &params));
    }
    cudaGraphExec_t exec_ = nullptr;
};
} // namespace

std::unique_ptr<stage_strategy> make_graph()
{
    return std::make_unique<in_graph>();
}
