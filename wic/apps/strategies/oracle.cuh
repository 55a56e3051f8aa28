// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_ORACLE_CUH
#define WIC_APP_ORACLE_CUH
// The oracle: party 1 of a round alone, with all chunks of party 0 already in device memory, so
// that it never waits for the host. It has the chunks that another strategy recorded. Its time is
// that of the fastest of several shapes: a resident kernel of one block up to as many as there is
// room for, with few registers for each thread or with many, or the kernels of the launching
// strategies in one graph.
#include "wic/apps/strategies/resident.cuh"
#include "wic/apps/strategies/step_kernels.cuh"

// A round's steps and chunks.
struct app_record {
    std::vector<app_step> steps;
    std::vector<size_t> at, up_at;          // place of each step in `chunks` and `ups`
    std::vector<unsigned char> chunks, ups; // made by party 0 and by party 1
};

constexpr unsigned app_oracle_threads = 512;

struct app_oracle_work {
    const app_step *steps;
    const size_t *at;
    uint32_t count; // number of steps
    const unsigned char *chunks;
    unsigned char *up;
    uint32_t *arrived;
    const uint32_t *stop;
    uint64_t limit_ns;
};

// Blocks take turns by warps, as in resident kernels.
__device__ inline app_part app_oracle_part()
{
    return resident_spread(blockIdx.x, gridDim.x, {threadIdx.x, blockDim.x});
}

// The work for chunk c begins at another thread than that for chunk c - 1.
__device__ inline app_part app_shifted(app_part part, uint32_t c, uint32_t chunks)
{
    return {(part.thread + c * max(1u, part.threads / max(1u, chunks))) % part.threads,
            part.threads};
}

template <class A>
__device__ void app_oracle_make(const typename A::view &view, const app_step &step,
                                unsigned char *up)
{
    const uint32_t count = step.up > 0 ? A::ups(view, step) : 0;
    for (uint32_t c = 0; c < count; c++) {
        A::template make<1>(view, step, {c, 0, step.up_units}, up + c * app_stride_for<A>(0, step),
                            app_shifted(app_oracle_part(), c, count));
    }
}

template <class A, int each>
__global__ void __launch_bounds__(app_oracle_threads, each)
    app_oracle_kernel(typename A::view view, app_oracle_work work)
{
    uint32_t barriers = 0;
    for (uint32_t s = 0; s < work.count; s++) {
        const app_step step = work.steps[s];
        if (A::facts.order == APP_EXCHANGES) {
            app_oracle_make<A>(view, step, work.up);
        }
        A::template independent<1>(view, step, app_oracle_part());
        for (uint32_t c = 0; c < step.down; c++) {
            A::template dependent<1>(view, step, {c, 0, step.down_units},
                                     work.chunks + work.at[s] + c * app_stride_for<A>(1, step),
                                     app_shifted(app_oracle_part(), c, step.down));
        }
        for (uint32_t phase = 0; phase < A::settles(step); phase++) {
            if (!app_barrier(work.arrived, &barriers, work.stop, work.limit_ns)) {
                return;
            }
            A::template settle<1>(view, step, phase, app_oracle_part());
        }
        if (!app_barrier(work.arrived, &barriers, work.stop, work.limit_ns)) {
            return;
        }
        if (A::facts.order == APP_ANSWERS) {
            app_oracle_make<A>(view, step, work.up);
        }
    }
}

template <class A> class app_oracle
{
  public:
    explicit app_oracle(const app_place<A> &place) : place_(place), kernels_(place)
    {
        APP_MUST(cudaEventCreate(&begin_));
        APP_MUST(cudaEventCreate(&end_));
        arrived_ = app_take_device(sizeof(uint32_t));
        if constexpr (!is_piped) {
            add(app_oracle_kernel<A, 1>);
            add(app_oracle_kernel<A, 4>);
        }
        shapes_.push_back({nullptr, 0}); // the graph
    }
    ~app_oracle()
    {
        forget();
        cudaEventDestroy(begin_);
        cudaEventDestroy(end_);
    }
    app_oracle(const app_oracle &) = delete;
    app_oracle &operator=(const app_oracle &) = delete;

    size_t shapes() const
    {
        return shapes_.size();
    }

    // The next runs are of this round.
    void load(const app_record &record)
    {
        forget();
        count_ = static_cast<uint32_t>(record.steps.size());
        const size_t steps = count_ * sizeof(app_step), at = app_stride(steps);
        index_ = app_take_device(at + count_ * sizeof(size_t));
        chunks_ = app_take_device(record.chunks.size());
        up_ = app_take_device((is_piped ? record.steps[0].up : place_.most.up) * place_.bytes[0]);
        APP_MUST(cudaMemcpy(index_.get(), record.steps.data(), steps, cudaMemcpyHostToDevice));
        APP_MUST(cudaMemcpy(index_.get() + at, record.at.data(), count_ * sizeof(size_t),
                            cudaMemcpyHostToDevice));
        APP_MUST(cudaMemcpy(chunks_.get(), record.chunks.data(), record.chunks.size(),
                            cudaMemcpyHostToDevice));
        cudaGraph_t graph;
        APP_MUST(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
        for (uint32_t s = 0; s < count_; s++) {
            launch(record.steps[s], chunks_.get() + record.at[s]);
        }
        APP_MUST(cudaStreamEndCapture(stream_, &graph));
        APP_MUST(cudaGraphInstantiate(&graph_, graph, 0));
        APP_MUST(cudaGraphDestroy(graph));
        APP_MUST(cudaGraphUpload(graph_, stream_));
        APP_MUST(cudaStreamSynchronize(stream_));
    }

    // Seconds of the round in a shape.
    double run(size_t shape)
    {
        APP_MUST(cudaMemset(arrived_.get(), 0, sizeof(uint32_t)));
        APP_MUST(cudaDeviceSynchronize());
        APP_MUST(cudaEventRecord(begin_, stream_));
        if (shapes_[shape].run == nullptr) {
            APP_MUST(cudaGraphLaunch(graph_, stream_));
        } else {
            launch_resident(shapes_[shape]);
        }
        APP_MUST(cudaEventRecord(end_, stream_));
        APP_MUST(cudaStreamSynchronize(stream_));
        float ms = 0;
        APP_MUST(cudaEventElapsedTime(&ms, begin_, end_));
        return ms / 1e3;
    }

  private:
    static constexpr bool is_piped = A::facts.order == APP_PIPED;

    using kernel = void(typename A::view, app_oracle_work);
    struct shape {
        kernel *run; // NULL: the graph
        unsigned blocks;
    };

    // A resident kernel of one block up to as many as there is room for.
    void add(kernel *run)
    {
        int most = 0;
        APP_MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, run, app_oracle_threads, 0));
        most *= place_.processors;
        for (int blocks = 1; blocks < place_.processors; blocks *= 4) {
            shapes_.push_back({run, static_cast<unsigned>(blocks)});
        }
        for (int blocks = place_.processors; blocks <= most; blocks *= 2) {
            shapes_.push_back({run, static_cast<unsigned>(blocks)});
        }
    }
    void forget()
    {
        if (graph_ != nullptr) {
            APP_MUST(cudaGraphExecDestroy(graph_));
            graph_ = nullptr;
        }
    }
    void launch_resident(const shape &of)
    {
        if constexpr (!is_piped) {
            const size_t at = app_stride(count_ * sizeof(app_step));
            app_oracle_work work = {reinterpret_cast<const app_step *>(index_.get()),
                                    reinterpret_cast<const size_t *>(index_.get() + at),
                                    count_,
                                    chunks_.get(),
                                    up_.get(),
                                    reinterpret_cast<uint32_t *>(arrived_.get()),
                                    place_.stop,
                                    place_.limit_ns};
            typename A::view view = place_.view;
            void *arguments[] = {&view, &work};
            APP_MUST(cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(of.run),
                                                 dim3(of.blocks), dim3(app_oracle_threads),
                                                 arguments, 0, stream_));
        }
    }
    void launch(const app_step &step, const unsigned char *chunks)
    {
        const app_work work = {step, 0, step.down, true, true, app_no_chunk};
        if constexpr (is_piped) {
            kernels_.piped(work, nullptr, chunks, place_.bytes[1], up_.get(), place_.bytes[0],
                           step.down, stream_);
            return;
        } else {
            if (A::facts.order == APP_EXCHANGES && step.up > 0) {
                kernels_.make(work, nullptr, up_.get(), 0, nullptr, stream_);
            }
            kernels_.independent(work, nullptr, stream_);
            if (step.down > 0) {
                kernels_.dependent(work, nullptr, chunks, 0, stream_);
            }
            for (uint32_t phase = 0; phase < A::settles(step); phase++) {
                kernels_.settle(work, nullptr, phase, stream_);
            }
            if (A::facts.order == APP_ANSWERS && step.up > 0) {
                kernels_.make(work, nullptr, up_.get(), 0, nullptr, stream_);
            }
        }
    }

    const app_place<A> &place_;
    const app_kernels<A> kernels_;
    app_stream stream_;
    cudaEvent_t begin_, end_;
    std::vector<shape> shapes_;
    app_on_device index_, chunks_, up_, arrived_;
    uint32_t count_ = 0;
    cudaGraphExec_t graph_ = nullptr;
};
#endif
