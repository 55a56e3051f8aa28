// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_STEP_KERNELS_CUH
#define WIC_APP_STEP_KERNELS_CUH
// The work of party 1 as kernels of a step: the barriers of the application are their ends. Shared
// by all strategies that launch. Chunks of a step are app_stride() apart.
#include "wic/apps/strategies/strategy.cuh"

#include <algorithm>

constexpr unsigned app_threads = 256;

constexpr uint32_t app_no_chunk = UINT32_MAX;

// A part of a step, by value or in device memory.
struct alignas(16) app_work {
    app_step step;
    uint32_t first, count; // chunks from party 0
    bool begins, ends;     // the first part of the step, the last one
    uint32_t lost;         // a chunk that is not taken, by mistake; app_no_chunk: none
};
constexpr size_t app_work_bytes = 64;
static_assert(sizeof(app_work) <= app_work_bytes, "");

__host__ __device__ inline size_t app_stride(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}
// Distance between the chunks of a step for party `to`.
template <class A> __host__ __device__ inline size_t app_stride_for(int to, const app_step &step)
{
    return app_stride(to == 1 ? size_t(step.down_units) * A::facts.down_unit
                              : size_t(step.up_units) * A::facts.up_unit);
}

// True if the application has work that needs no chunk of the step.
template <class A>
constexpr bool app_has_independent =
    &A::template independent<1> != &app_base<typename A::view>::template independent<1>;

__device__ inline app_part app_grid_part()
{
    return {blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x};
}
// The block's stamps, for its first thread; the others and blocks without stamps get NULL.
__device__ inline app_stamps *app_own_stamp(app_stamps *stamps, uint32_t row)
{
    return threadIdx.x == 0 && blockIdx.y == 0 ? app_stamp(stamps, row, blockIdx.x) : nullptr;
}

template <class A>
__global__ void __launch_bounds__(app_threads)
    app_independent_kernel(typename A::view view, app_work by_value, const app_work *at,
                           app_stamps *stamps)
{
    const app_work work = at != nullptr ? *at : by_value;
    if (!work.begins) {
        return;
    }
    app_stamps *own = app_own_stamp(stamps, work.step.index);
    if (own != nullptr) {
        own->begin = app_now();
    }
    A::template independent<1>(view, work.step, app_grid_part());
    __syncthreads();
    if (own != nullptr) {
        own->independent_end = app_now();
    }
}

// Chunks of odd steps are `turn` bytes after those of even ones.
template <class A>
__global__ void __launch_bounds__(app_threads)
    app_dependent_kernel(typename A::view view, app_work by_value, const app_work *at,
                         const unsigned char *chunks, size_t turn, app_stamps *stamps)
{
    const app_work work = at != nullptr ? *at : by_value;
    const app_step &step = work.step;
    if (work.count == 0) {
        return;
    }
    app_stamps *own = app_own_stamp(stamps, step.index);
    if (own != nullptr && work.begins && !app_has_independent<A>) {
        own->begin = own->independent_end = app_now();
    }
    if (own != nullptr && work.first + work.count == step.down) {
        own->in_hand = app_now();
    }
    const size_t stride = app_stride_for<A>(1, step);
    for (uint32_t i = blockIdx.y; i < work.count; i += gridDim.y) {
        const uint32_t c = work.first + i;
        if (c != work.lost) {
            A::template dependent<1>(view, step, {c, 0, step.down_units},
                                     chunks + step.index % 2 * turn + c * stride, app_grid_part());
        }
    }
    __syncthreads();
    if (own != nullptr) {
        own->dependent_end = app_now();
    }
}

template <class A>
__global__ void __launch_bounds__(app_threads)
    app_settle_kernel(typename A::view view, app_work by_value, const app_work *at, uint32_t phase)
{
    const app_work work = at != nullptr ? *at : by_value;
    if (work.ends && phase < A::settles(work.step)) {
        A::template settle<1>(view, work.step, phase, app_grid_part());
    }
}

// Chunks of odd steps are `turn` bytes after those of even ones. *ups: number of chunks, in memory
// of either side; or NULL.
template <class A>
__global__ void __launch_bounds__(app_threads)
    app_make_kernel(typename A::view view, app_work by_value, const app_work *at,
                    unsigned char *chunks, size_t turn, uint32_t *ups)
{
    const app_work work = at != nullptr ? *at : by_value;
    const app_step &step = work.step;
    if (step.up == 0 || !(A::facts.order == APP_EXCHANGES ? work.begins : work.ends)) {
        return;
    }
    const uint32_t count = A::ups(view, step);
    const size_t stride = app_stride_for<A>(0, step);
    for (uint32_t c = blockIdx.y; c < count; c += gridDim.y) {
        A::template make<1>(view, step, {c, 0, step.up_units},
                            chunks + step.index % 2 * turn + c * stride, app_grid_part());
    }
    if (ups != nullptr && app_grid_part().thread == 0 && blockIdx.y == 0) {
        *ups = count;
    }
}

// Chunk c is in place c % slots of both rings.
template <class A>
__global__ void __launch_bounds__(app_threads)
    app_piped_kernel(typename A::view view, app_work by_value, const app_work *at,
                     const unsigned char *in, size_t in_stride, unsigned char *out,
                     size_t out_stride, uint32_t slots, app_stamps *stamps)
{
    const app_work work = at != nullptr ? *at : by_value;
    const app_step &step = work.step;
    for (uint32_t i = blockIdx.y; i < work.count; i += gridDim.y) {
        const uint32_t c = work.first + i;
        app_stamps *own = threadIdx.x == 0 ? app_stamp(stamps, c, blockIdx.x) : nullptr;
        if (own != nullptr) {
            own->begin = own->independent_end = own->in_hand = app_now();
        }
        if (c != work.lost) {
            A::template dependent<1>(view, step, {c, 0, step.down_units},
                                     in + c % slots * in_stride, app_grid_part());
        }
        A::template make<1>(view, step, {c, 0, step.up_units}, out + c % slots * out_stride,
                            app_grid_part());
        if (own != nullptr) {
            own->dependent_end = app_now();
        }
    }
}

// --- launches ---------------------------------------------------------------------------------

template <class A> class app_kernels
{
  public:
    explicit app_kernels(const app_place<A> &place)
        : place_(place),
          wide_(static_cast<unsigned>(std::clamp<size_t>(
              app_bytes<A>(place.size, 1) / 16 / app_threads, 1, size_t(place.processors) * 8)))
    {
    }

    void independent(const app_work &work, const app_work *at, cudaStream_t stream) const
    {
        if constexpr (app_has_independent<A>) {
            app_independent_kernel<A>
                <<<wide_, app_threads, 0, stream>>>(place_.view, work, at, place_.stamps);
            APP_MUST(cudaGetLastError());
        }
    }
    void dependent(const app_work &work, const app_work *at, const unsigned char *chunks,
                   size_t turn, cudaStream_t stream) const
    {
        const dim3 grid = grid_for(place_.bytes[1], at != nullptr ? place_.most.down : work.count);
        app_dependent_kernel<A>
            <<<grid, app_threads, 0, stream>>>(place_.view, work, at, chunks, turn, place_.stamps);
        APP_MUST(cudaGetLastError());
    }
    void settle(const app_work &work, const app_work *at, uint32_t phase, cudaStream_t stream) const
    {
        app_settle_kernel<A><<<wide_, app_threads, 0, stream>>>(place_.view, work, at, phase);
        APP_MUST(cudaGetLastError());
    }
    void make(const app_work &work, const app_work *at, unsigned char *chunks, size_t turn,
              uint32_t *ups, cudaStream_t stream) const
    {
        const dim3 grid = grid_for(place_.bytes[0], at != nullptr ? place_.most.up : work.step.up);
        app_make_kernel<A>
            <<<grid, app_threads, 0, stream>>>(place_.view, work, at, chunks, turn, ups);
        APP_MUST(cudaGetLastError());
    }
    void piped(const app_work &work, const app_work *at, const unsigned char *in, size_t in_stride,
               unsigned char *out, size_t out_stride, uint32_t slots, cudaStream_t stream) const
    {
        const dim3 grid = grid_for(place_.bytes[1], at != nullptr ? slots : work.count);
        app_piped_kernel<A><<<grid, app_threads, 0, stream>>>(
            place_.view, work, at, in, in_stride, out, out_stride, slots, place_.stamps);
        APP_MUST(cudaGetLastError());
    }

  private:
    // 8 bytes a thread; no more blocks than the GPU has room for.
    dim3 grid_for(size_t bytes, uint32_t chunks) const
    {
        const unsigned most = static_cast<unsigned>(place_.processors) * 8;
        const unsigned across =
            static_cast<unsigned>(std::clamp<size_t>(bytes / 8 / app_threads, 1, most));
        return dim3(across, std::clamp(chunks, 1u, std::max(1u, most / across)));
    }

    const app_place<A> &place_;
    const unsigned wide_; // blocks for the whole view
};

// --- memory and waits -------------------------------------------------------------------------

struct app_pinned_free {
    void operator()(void *memory) const
    {
        cudaFreeHost(memory);
    }
};
struct app_device_free {
    void operator()(void *memory) const
    {
        cudaFree(memory);
    }
};
using app_pinned = std::unique_ptr<unsigned char, app_pinned_free>; // the same on both sides
using app_on_device = std::unique_ptr<unsigned char, app_device_free>;

inline app_pinned app_take_pinned(size_t bytes)
{
    void *memory = nullptr;
    APP_MUST(cudaHostAlloc(&memory, std::max<size_t>(bytes, 1),
                           cudaHostAllocPortable | cudaHostAllocMapped));
    return app_pinned(static_cast<unsigned char *>(memory));
}
inline app_on_device app_take_device(size_t bytes)
{
    void *memory = nullptr;
    APP_MUST(cudaMalloc(&memory, std::max<size_t>(bytes, 1)));
    return app_on_device(static_cast<unsigned char *>(memory));
}

class app_event
{
  public:
    app_event()
    {
        APP_MUST(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    }
    ~app_event()
    {
        cudaEventDestroy(event_);
    }
    app_event(const app_event &) = delete;
    app_event &operator=(const app_event &) = delete;

    void record(cudaStream_t stream)
    {
        APP_MUST(cudaEventRecord(event_, stream));
    }
    void hold(cudaStream_t stream) const // until the event
    {
        APP_MUST(cudaStreamWaitEvent(stream, event_, 0));
    }
    bool is_done() const
    {
        const cudaError_t error = cudaEventQuery(event_);
        if (error != cudaErrorNotReady) {
            APP_MUST(error);
        }
        return error == cudaSuccess;
    }
    // False: the round takes too long.
    template <class A> bool wait(app_run<A> &host) const
    {
        while (!is_done()) {
            if (host.is_late()) {
                return false;
            }
        }
        return true;
    }

  private:
    cudaEvent_t event_;
};

class app_stream
{
  public:
    app_stream()
    {
        APP_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    ~app_stream()
    {
        cudaStreamDestroy(stream_);
    }
    app_stream(const app_stream &) = delete;
    app_stream &operator=(const app_stream &) = delete;
    operator cudaStream_t() const
    {
        return stream_;
    }

  private:
    cudaStream_t stream_;
};
#endif
