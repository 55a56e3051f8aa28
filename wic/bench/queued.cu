// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The usual strategies: copy in, kernel, copy out in four streams, and the same as a graph of 64
// chunks. A stream keeps its chunks in order, and slots are a multiple of the streams, so no slot
// or device buffer needs a wait of the host.
#include "wic/bench/ndvi.cuh"

#include <algorithm>

namespace
{
constexpr uint32_t streams = 4, graph_chunks = 64;

__global__ void ndvi_chunk(const unsigned char *in, unsigned char *out, uint32_t chunk,
                           uint32_t piece)
{
    for (uint32_t at = blockIdx.x * piece; at < chunk; at += gridDim.x * piece) {
        ndvi_piece(in + at, out + at / in_unit * out_unit, min(piece, chunk - at) / in_unit,
                   threadIdx.x, blockDim.x);
    }
}

class queued : public strategy
{
  public:
    explicit queued(const bench_pool &pool) : pool_(pool)
    {
        for (uint32_t i = 0; i < streams; i++) {
            CUDA_MUST(cudaStreamCreateWithFlags(&stream_[i], cudaStreamNonBlocking));
            CUDA_MUST(cudaMalloc(&in_[i], pool.chunk));
            CUDA_MUST(cudaMalloc(&out_[i], pool.chunk));
        }
    }

    ~queued() override
    {
        for (uint32_t i = 0; i < streams; i++) {
            cudaStreamDestroy(stream_[i]);
            cudaFree(in_[i]);
            cudaFree(out_[i]);
        }
    }

    double leave_ms() override
    {
        return 0; // nothing stays
    }

  protected:
    void put(uint32_t slot, uint32_t lane, cudaStream_t stream)
    {
        const size_t out_bytes = pool_.chunk / in_unit * out_unit;
        const unsigned blocks =
            static_cast<unsigned>((pool_.chunk + pool_.piece - 1) / pool_.piece);
        CUDA_MUST(cudaMemcpyAsync(in_[lane], pool_.in + slot * pool_.in_stride, pool_.chunk,
                                  cudaMemcpyHostToDevice, stream));
        ndvi_chunk<<<blocks, 256, 0, stream>>>(in_[lane], out_[lane],
                                               static_cast<uint32_t>(pool_.chunk),
                                               static_cast<uint32_t>(pool_.piece));
        CUDA_MUST(cudaGetLastError());
        CUDA_MUST(cudaMemcpyAsync(pool_.out + slot * pool_.out_stride, out_[lane], out_bytes,
                                  cudaMemcpyDeviceToHost, stream));
    }

    void wait()
    {
        for (uint32_t i = 0; i < streams; i++) {
            CUDA_MUST(cudaStreamSynchronize(stream_[i]));
        }
    }

    const bench_pool &pool_;
    cudaStream_t stream_[streams];
    unsigned char *in_[streams], *out_[streams];
};

class streamed : public queued
{
  public:
    using queued::queued;

    double throughput(uint64_t chunks) override
    {
        const uint32_t slots = pool_.slots / streams * streams;
        const double start = bench_seconds();
        for (uint64_t i = 0; i < chunks; i++) {
            put(static_cast<uint32_t>(i % slots), i % streams, stream_[i % streams]);
        }
        wait();
        return bench_seconds() - start;
    }

    void once() override
    {
        put(0, 0, stream_[0]);
        CUDA_MUST(cudaStreamSynchronize(stream_[0]));
    }

    uint32_t slots_used(uint64_t chunks) const override
    {
        return static_cast<uint32_t>(std::min<uint64_t>(chunks, pool_.slots / streams * streams));
    }
};

class graphed : public queued
{
  public:
    explicit graphed(const bench_pool &pool)
        : queued(pool), many_(capture(graph_chunks)), one_(capture(1))
    {
    }

    ~graphed() override
    {
        cudaGraphExecDestroy(many_);
        cudaGraphExecDestroy(one_);
    }

    double throughput(uint64_t chunks) override
    {
        const double start = bench_seconds();
        for (uint64_t i = 0; i < (chunks + graph_chunks - 1) / graph_chunks; i++) {
            CUDA_MUST(cudaGraphLaunch(many_, stream_[0]));
        }
        wait();
        // As if only the chunks asked for had been made.
        const uint64_t made = (chunks + graph_chunks - 1) / graph_chunks * graph_chunks;
        return (bench_seconds() - start) * static_cast<double>(chunks) / static_cast<double>(made);
    }

    void once() override
    {
        CUDA_MUST(cudaGraphLaunch(one_, stream_[0]));
        CUDA_MUST(cudaStreamSynchronize(stream_[0]));
    }

    uint32_t slots_used(uint64_t) const override
    {
        return graph_chunks;
    }

  private:
    // The chunks in four branches.
    cudaGraphExec_t capture(uint32_t chunks)
    {
        cudaEvent_t fork, join;
        cudaGraph_t graph;
        cudaGraphExec_t ready;
        CUDA_MUST(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
        CUDA_MUST(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
        CUDA_MUST(cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeThreadLocal));
        CUDA_MUST(cudaEventRecord(fork, stream_[0]));
        for (uint32_t i = 1; i < std::min(streams, chunks); i++) {
            CUDA_MUST(cudaStreamWaitEvent(stream_[i], fork, 0));
        }
        for (uint32_t i = 0; i < chunks; i++) {
            put(i, i % streams, stream_[i % streams]);
        }
        for (uint32_t i = 1; i < std::min(streams, chunks); i++) {
            CUDA_MUST(cudaEventRecord(join, stream_[i]));
            CUDA_MUST(cudaStreamWaitEvent(stream_[0], join, 0));
        }
        CUDA_MUST(cudaStreamEndCapture(stream_[0], &graph));
        CUDA_MUST(cudaGraphInstantiate(&ready, graph, 0));
        CUDA_MUST(cudaGraphDestroy(graph));
        cudaEventDestroy(fork);
        cudaEventDestroy(join);
        return ready;
    }

    cudaGraphExec_t many_, one_;
};
} // namespace

std::unique_ptr<strategy> make_streams(const bench_pool &pool)
{
    return std::make_unique<streamed>(pool);
}

std::unique_ptr<strategy> make_graph(const bench_pool &pool)
{
    return std::make_unique<graphed>(pool);
}
