// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams that batch: all chunks that have arrived and lie side by side, up to a limit, make one
// copy in, one kernel and one copy out on the next stream. While all streams have as many batches
// queued as they may, chunks gather, so batches grow with the load. With batches of one chunk and
// many of them queued, it is the usual pipeline of streams.
#include "wic/bench/base/ndvi.cuh"
#include "wic/bench/strategies/strategies.cuh"

#include <algorithm>

namespace
{
constexpr unsigned threads = 256;

__global__ void __launch_bounds__(threads)
    ndvi_batch(const unsigned char *in, unsigned char *out, uint64_t units)
{
    const uint64_t line = static_cast<uint64_t>(blockIdx.x) * 2; // two lines a block: 8 pixels each
    for (uint64_t at = line; at < units / line_units; at += 2 * gridDim.x) {
        const uint32_t lines = static_cast<uint32_t>(min(uint64_t{2}, units / line_units - at));
        ndvi_lines(in + at * line_in, out + at * line_out, lines * line_units, threadIdx.x,
                   threads);
    }
}

class stream_batch : public strategy
{
  public:
    stream_batch(const bench_pool &pool, const bench_shape &shape)
        : strategy(pool.slots), pool_(pool), most_(std::max<uint64_t>(1, shape.batch / pool.chunk)),
          lanes_(shape.lanes), batches_(shape.lanes * shape.queued)
    {
        for (lane &l : lanes_) {
            CUDA_MUST(cudaStreamCreateWithFlags(&l.stream, cudaStreamNonBlocking));
            CUDA_MUST(cudaMalloc(&l.in, most_ * pool.in_stride));
            CUDA_MUST(cudaMalloc(&l.out, most_ * pool.out_stride));
        }
        for (batch &b : batches_) {
            CUDA_MUST(cudaEventCreateWithFlags(&b.done, cudaEventDisableTiming));
        }
    }

    ~stream_batch() override
    {
        for (lane &l : lanes_) {
            cudaStreamSynchronize(l.stream);
            cudaStreamDestroy(l.stream);
            cudaFree(l.in);
            cudaFree(l.out);
        }
        for (batch &b : batches_) {
            cudaEventDestroy(b.done);
        }
    }

    void submit(uint64_t end) override
    {
        arrived_ = end;
        start();
    }

    uint64_t poll() override
    {
        for (; ended_ < begun_; ended_++) {
            const batch &b = batches_[ended_ % batches_.size()];
            const cudaError_t error = cudaEventQuery(b.done);
            if (error == cudaErrorNotReady) {
                break;
            }
            CUDA_MUST(error);
            done_ = b.end;
        }
        start();
        return done_;
    }

  private:
    struct lane {
        cudaStream_t stream;
        unsigned char *in, *out; // of the batch that the stream works on
    };
    struct batch {
        cudaEvent_t done;
        uint64_t end; // of its chunks
    };

    void start()
    {
        while (taken_ < arrived_ && begun_ - ended_ < batches_.size()) {
            const uint64_t slot = taken_ % pool_.slots;
            const uint64_t chunks = std::min({arrived_ - taken_, pool_.slots - slot, most_});
            put(slot, chunks);
        }
    }

    void put(uint64_t slot, uint64_t chunks)
    {
        const lane &l = lanes_[begun_ % lanes_.size()];
        batch &b = batches_[begun_++ % batches_.size()];
        const uint64_t units = chunks * (pool_.chunk / in_unit);
        CUDA_MUST(cudaMemcpyAsync(l.in, pool_.in + slot * pool_.in_stride, units * in_unit,
                                  cudaMemcpyHostToDevice, l.stream));
        launch_ndvi(l.in, l.out, units, l.stream);
        CUDA_MUST(cudaMemcpyAsync(pool_.out + slot * pool_.out_stride, l.out, units * out_unit,
                                  cudaMemcpyDeviceToHost, l.stream));
        CUDA_MUST(cudaEventRecord(b.done, l.stream));
        taken_ += chunks;
        b.end = taken_;
    }

    const bench_pool &pool_;
    const uint64_t most_; // chunks of a batch
    std::vector<lane> lanes_;
    std::vector<batch> batches_;
    uint64_t arrived_ = 0, taken_ = 0, done_ = 0; // chunks
    uint64_t begun_ = 0, ended_ = 0;              // batches
};
} // namespace

void launch_ndvi(const unsigned char *in, unsigned char *out, uint64_t units, cudaStream_t stream)
{
    const unsigned blocks =
        static_cast<unsigned>(std::min<uint64_t>((units / line_units + 1) / 2, 1056));
    ndvi_batch<<<blocks, threads, 0, stream>>>(in, out, units);
    CUDA_MUST(cudaGetLastError());
}

std::unique_ptr<strategy> make_stream_batch(const bench_pool &pool, const bench_shape &shape)
{
    return std::make_unique<stream_batch>(pool, shape);
}

std::unique_ptr<strategy> make_stream(const bench_pool &pool, const bench_shape &shape)
{
    bench_shape one = shape;
    one.batch = 0;
    return make_stream_batch(pool, one);
}
