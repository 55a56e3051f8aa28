// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs: copy in, kernel and copy out of one chunk, instantiated before for each slot and launched
// in four streams in turn. A stream keeps its chunks in order, so the four device buffers need no
// wait of the host.
#include "wic/bench/strategies/strategies.cuh"

#include <algorithm>

namespace
{
constexpr uint32_t lanes = 4;
constexpr uint64_t graphs_max = 1024; // so few slots are used
constexpr uint64_t ahead_max = 64;    // launched and not done

class graphed : public strategy
{
  public:
    explicit graphed(const bench_pool &pool)
        : strategy(std::min<uint64_t>(pool.slots, graphs_max) / lanes * lanes), pool_(pool),
          graphs_(slots)
    {
        for (lane &l : lanes_) {
            CUDA_MUST(cudaStreamCreateWithFlags(&l.stream, cudaStreamNonBlocking));
            CUDA_MUST(cudaMalloc(&l.in, pool.in_stride));
            CUDA_MUST(cudaMalloc(&l.out, pool.out_stride));
        }
        for (cudaEvent_t &event : done_event_) {
            CUDA_MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        }
        for (size_t i = 0; i < graphs_.size(); i++) {
            graphs_[i] = capture(i, lanes_[i % lanes]);
        }
    }

    ~graphed() override
    {
        for (lane &l : lanes_) {
            cudaStreamSynchronize(l.stream);
            cudaStreamDestroy(l.stream);
            cudaFree(l.in);
            cudaFree(l.out);
        }
        for (cudaEvent_t event : done_event_) {
            cudaEventDestroy(event);
        }
        for (cudaGraphExec_t graph : graphs_) {
            cudaGraphExecDestroy(graph);
        }
    }

    void submit(uint64_t end) override
    {
        arrived_ = end;
        start();
    }

    uint64_t poll() override
    {
        for (; done_ < begun_; done_++) {
            const cudaError_t error = cudaEventQuery(done_event_[done_ % ahead_max]);
            if (error == cudaErrorNotReady) {
                break;
            }
            CUDA_MUST(error);
        }
        start();
        return done_;
    }

  private:
    struct lane {
        cudaStream_t stream;
        unsigned char *in, *out;
    };

    void start()
    {
        for (; begun_ < arrived_ && begun_ - done_ < ahead_max; begun_++) {
            const lane &l = lanes_[begun_ % lanes];
            CUDA_MUST(cudaGraphLaunch(graphs_[begun_ % graphs_.size()], l.stream));
            CUDA_MUST(cudaEventRecord(done_event_[begun_ % ahead_max], l.stream));
        }
    }

    cudaGraphExec_t capture(size_t slot, const lane &l)
    {
        cudaGraph_t graph;
        cudaGraphExec_t ready;
        const uint64_t units = pool_.chunk / in_unit;
        CUDA_MUST(cudaStreamBeginCapture(l.stream, cudaStreamCaptureModeThreadLocal));
        CUDA_MUST(cudaMemcpyAsync(l.in, pool_.in + slot * pool_.in_stride, pool_.in_stride,
                                  cudaMemcpyHostToDevice, l.stream));
        launch_ndvi(l.in, l.out, units, l.stream);
        CUDA_MUST(cudaMemcpyAsync(pool_.out + slot * pool_.out_stride, l.out, pool_.out_stride,
                                  cudaMemcpyDeviceToHost, l.stream));
        CUDA_MUST(cudaStreamEndCapture(l.stream, &graph));
        CUDA_MUST(cudaGraphInstantiate(&ready, graph, 0));
        CUDA_MUST(cudaGraphDestroy(graph));
        CUDA_MUST(cudaGraphUpload(ready, l.stream));
        return ready;
    }

    const bench_pool &pool_;
    lane lanes_[lanes];
    cudaEvent_t done_event_[ahead_max];
    std::vector<cudaGraphExec_t> graphs_; // by slot
    uint64_t arrived_ = 0, begun_ = 0, done_ = 0;
};
} // namespace

std::unique_ptr<strategy> make_graph(const bench_pool &pool, const bench_shape &)
{
    return pool.slots < lanes ? nullptr : std::make_unique<graphed>(pool);
}
