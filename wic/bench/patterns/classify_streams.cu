// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// k-means by streams: a kernel a round, and the ways to get centres to it and sums back.
#include "wic/bench/patterns/classify.cuh"

#include <cstring>

namespace
{
using namespace kmeans;

__global__ void __launch_bounds__(threads)
    classify_launch(share all, const centres *down, sums *total)
{
    __shared__ sums own;
    clear(&own, threadIdx.x);
    __syncthreads();
    add_pixels(all.pixels, static_cast<uint64_t>(blockIdx.x) * threads + threadIdx.x, all.count,
               gridDim.x * threads, *down, &own);
    __syncthreads();
    if (threadIdx.x < classes * 4) {
        atomicAdd(&total->of[0][0] + threadIdx.x, (&own.of[0][0])[threadIdx.x]);
    }
}

// What is common to the ways by streams.
class classify_rounds : public pattern_way
{
  public:
    classify_rounds() : pattern_way(1)
    {
        CUDA_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CUDA_MUST(cudaMalloc(&on_device_, sizeof *on_device_));
        CUDA_MUST(cudaMemset(on_device_, 0, sizeof *on_device_));
        CUDA_MUST(cudaHostAlloc(&pinned_, sizeof *pinned_, cudaHostAllocMapped));
        memset(pinned_, 0, sizeof *pinned_);
    }

    ~classify_rounds() override
    {
        cudaStreamSynchronize(stream_);
        cudaStreamDestroy(stream_);
        cudaFree(on_device_);
        cudaFreeHost(pinned_);
    }

    void submit(uint64_t end) override
    {
        if (end > begun_) {
            begun_++;
            pinned_->down = rounds_.now;
            start();
        }
    }

    uint64_t poll() override
    {
        if (ended_ < begun_ && is_over()) {
            rounds_.end(pinned_->up);
            ended_++;
        }
        return ended_;
    }

    uint64_t wrong() override
    {
        return rounds_.wrong;
    }

  protected:
    struct exchanged {
        centres down;
        sums up;
        alignas(128) uint64_t flag;
    };

    virtual void start() = 0;
    virtual bool is_over() = 0;

    cudaStream_t stream_;
    exchanged *on_device_, *pinned_;
    rounds rounds_;
    uint64_t begun_ = 0, ended_ = 0;
};

// Copies and a kernel in a stream.
class classify_stream : public classify_rounds
{
  public:
    classify_stream()
    {
        CUDA_MUST(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
    }

    ~classify_stream() override
    {
        cudaEventDestroy(done_);
    }

  protected:
    void queue()
    {
        CUDA_MUST(cudaMemcpyAsync(&on_device_->down, &pinned_->down, sizeof(centres),
                                  cudaMemcpyHostToDevice, stream_));
        CUDA_MUST(cudaMemsetAsync(&on_device_->up, 0, sizeof(sums), stream_));
        classify_launch<<<2 * scene.multiprocessors, threads, 0, stream_>>>(
            {scene.pixels, scene.count}, &on_device_->down, &on_device_->up);
        CUDA_MUST(cudaGetLastError());
        CUDA_MUST(cudaMemcpyAsync(&pinned_->up, &on_device_->up, sizeof(sums),
                                  cudaMemcpyDeviceToHost, stream_));
    }

    void start() override
    {
        queue();
        CUDA_MUST(cudaEventRecord(done_, stream_));
    }

    bool is_over() override
    {
        const cudaError_t error = cudaEventQuery(done_);
        if (error != cudaErrorNotReady) {
            CUDA_MUST(error);
        }
        return error == cudaSuccess;
    }

    cudaEvent_t done_;
};

// The same four as a graph.
class classify_graph : public classify_stream
{
  public:
    classify_graph()
    {
        cudaGraph_t graph;
        CUDA_MUST(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
        queue();
        CUDA_MUST(cudaStreamEndCapture(stream_, &graph));
        CUDA_MUST(cudaGraphInstantiate(&graph_, graph, 0));
        CUDA_MUST(cudaGraphDestroy(graph));
    }

    ~classify_graph() override
    {
        cudaStreamSynchronize(stream_);
        cudaGraphExecDestroy(graph_);
    }

  protected:
    void start() override
    {
        CUDA_MUST(cudaGraphLaunch(graph_, stream_));
        CUDA_MUST(cudaEventRecord(done_, stream_));
    }

  private:
    cudaGraphExec_t graph_;
};

// No copies: centres as the kernel's argument; the last block stores the sums to pinned memory.
__global__ void __launch_bounds__(threads)
    classify_zero_copy(share all, centres down, total *sum, sums *up, uint64_t *flag,
                       uint64_t number)
{
    __shared__ sums own;
    __shared__ bool is_last;
    clear(&own, threadIdx.x);
    __syncthreads();
    add_pixels(all.pixels, static_cast<uint64_t>(blockIdx.x) * threads + threadIdx.x, all.count,
               gridDim.x * threads, down, &own);
    __syncthreads();
    if (add_to_total(own, sum, gridDim.x, up, threadIdx.x, &is_last, [] { __syncthreads(); }) &&
        threadIdx.x < 32) {
        __syncwarp();
        if (threadIdx.x == 0) {
            wic_store_system(flag, number);
        }
    }
}

class classify_flag : public classify_rounds
{
  protected:
    void start() override
    {
        classify_zero_copy<<<2 * scene.multiprocessors, threads, 0, stream_>>>(
            {scene.pixels, scene.count}, pinned_->down, scene.sum, &pinned_->up, &pinned_->flag,
            begun_);
        CUDA_MUST(cudaGetLastError());
    }

    bool is_over() override
    {
        return __atomic_load_n(&pinned_->flag, __ATOMIC_ACQUIRE) == begun_;
    }
};

} // namespace

std::unique_ptr<pattern_way> kmeans::make_stream(const pattern_shape &)
{
    return std::make_unique<classify_stream>();
}

std::unique_ptr<pattern_way> kmeans::make_graph(const pattern_shape &)
{
    return std::make_unique<classify_graph>();
}

std::unique_ptr<pattern_way> kmeans::make_zero_copy(const pattern_shape &)
{
    return std::make_unique<classify_flag>();
}
