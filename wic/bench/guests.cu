// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A frame has a word for each thread, which reads it in the host's memory and stores a result
// there. Where all threads can be resident at once they wait for frame after frame; else a kernel
// is launched for each frame before it is there (and by `launch` when it is there). The ways differ
// in what is polled by whom:
//
//   guest         thread 0 of a block polls the ready board, with naps and looks at the end word
//   poll-elected  thread 0 of a block polls the ready board
//   poll-every    thread 0 of each warp polls the ready board
//   poll-host     thread 0 of a block polls the host's word over the link
//   managed-flag  thread 0 of a block polls a word in managed memory by atomics; words, frames and
//                 results are managed, as in the paper's baseline
//   launch        no word; the host launches a kernel for each frame
//
// The ready board is that of a link whose kernel is the Monitor alone. One thread of the host posts
// frames and polls for results; no channels are involved.
#include "wic/bench/guests.cuh"

#include "wic/bench/base/bench.cuh"
#include "wic/depend/guest.cuh"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace
{
constexpr uint32_t slots = 8, block_most = 256;
constexpr uint32_t frames_checked = 40, frames_most = 1000;
constexpr double measure_s = 0.12;
constexpr uint64_t limit_ns = 5000000000;

enum way { GUEST, ELECTED, EVERY, HOST, MANAGED, LAUNCH, WAYS };
const char *const way_names[WAYS] = {"guest",     "poll-elected", "poll-every",
                                     "poll-host", "managed-flag", "launch"};

struct scale_view {
    wic_guest_view link;
    uint64_t *posted; // number + 1 in each slot, for HOST and MANAGED
    const uint32_t *stop;
    uint32_t units; // words between slots
};

// One thread waits for a frame. False: leave.
template <way kind> __device__ bool await(const scale_view &v, uint64_t frame)
{
    if constexpr (kind == GUEST) {
        uint32_t low;
        return wic_guest_await(v.link, frame, &low) == WIC_GUEST_HERE;
    } else {
        const uint64_t begin = wic_now();
        for (uint32_t turn = 1;; turn++) {
            uint64_t seen;
            if constexpr (kind == MANAGED) {
                seen = atomicAdd_system(
                    reinterpret_cast<unsigned long long *>(&v.posted[frame % slots]), 0ULL);
            } else if constexpr (kind == HOST) {
                seen = wic_load_system(&v.posted[frame % slots]);
            } else {
                seen = wic_guest_peek(&v.link.ready_board[frame & v.link.ring_mask]) >> 32;
            }
            if (seen == frame + 1) {
                break;
            }
            if (turn % 4096 == 0 && (*static_cast<const volatile uint32_t *>(v.stop) != 0 ||
                                     wic_now() - begin > limit_ns)) {
                return false;
            }
        }
        if constexpr (kind == MANAGED) {
            __threadfence_system();
        } else if constexpr (kind != HOST) {
            (void)wic_load_device(&v.link.ready_board[frame & v.link.ring_mask]);
        }
        return true;
    }
}

__host__ __device__ uint32_t result_of(uint32_t word, uint64_t frame)
{
    return word * 3 + static_cast<uint32_t>(frame);
}

template <way kind>
__global__ void __launch_bounds__(block_most)
    consume(const __grid_constant__ scale_view v, uint64_t first, uint64_t frames)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    for (uint64_t frame = first; frame < first + frames; frame++) {
        bool is_here = true;
        if constexpr (kind == EVERY) {
            is_here = threadIdx.x % 32 != 0 || await<kind>(v, frame);
        } else if constexpr (kind != LAUNCH) {
            is_here = threadIdx.x != 0 || await<kind>(v, frame);
        }
        if (kind != LAUNCH && __syncthreads_or(!is_here) != 0) {
            return;
        }
        const size_t at = frame % slots * v.units + i;
        reinterpret_cast<uint32_t *>(v.link.out)[at] =
            result_of(reinterpret_cast<const uint32_t *>(v.link.in)[at], frame);
        __syncthreads();
        if (threadIdx.x == 0) {
            wic_guest_finish(v.link, frame);
        }
    }
}

const void *const kernels[WAYS] = {
    reinterpret_cast<const void *>(consume<GUEST>),
    reinterpret_cast<const void *>(consume<ELECTED>),
    reinterpret_cast<const void *>(consume<EVERY>),
    reinterpret_cast<const void *>(consume<HOST>),
    reinterpret_cast<const void *>(consume<MANAGED>),
    reinterpret_cast<const void *>(consume<LAUNCH>),
};

__global__ void host_guests(const __grid_constant__ wic_view view, wic_guest_desk *desk)
{
    wic_guest_host(view, desk);
}

// One way and number of threads: its memory, kernels and words.
class scale
{
  public:
    scale(way kind, uint32_t threads) : kind_(kind), units_(threads)
    {
        const size_t bytes = size_t(slots) * threads * sizeof(uint32_t);
        CUDA_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        take(bytes, &in_);
        take(bytes, &out_);
        take(slots * sizeof(uint64_t), &view_.posted);
        take(32 * sizeof(uint64_t), &view_.link.done);
        CUDA_MUST(cudaHostAlloc(&stop_, sizeof *stop_, cudaHostAllocMapped));
        CUDA_MUST(cudaHostAlloc(&desk_, sizeof *desk_, cudaHostAllocMapped));
        CUDA_MUST(cudaMalloc(&arrived_, 32 * sizeof(uint32_t)));
        CUDA_MUST(cudaMemset(arrived_, 0, 32 * sizeof(uint32_t)));
        view_.link.arrived = arrived_;
        memset(view_.posted, 0, slots * sizeof(uint64_t));
        memset(view_.link.done, 0, 32 * sizeof(uint64_t));
        memset(desk_, 0, sizeof *desk_);
        *stop_ = 0;
        for (size_t i = 0; i < size_t(slots) * threads; i++) {
            in_[i] = static_cast<uint32_t>(i * 2654435761u);
        }
        threads_ = std::min(threads, block_most);
        blocks_ = threads / threads_;
        view_.link.in = reinterpret_cast<unsigned char *>(in_);
        view_.link.out = reinterpret_cast<unsigned char *>(out_);
        view_.link.ring_mask = 31;
        view_.units = threads;
        view_.stop = stop_;
        int each = 0, processors = 0, gpu = 0;
        CUDA_MUST(cudaGetDevice(&gpu));
        CUDA_MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu));
        CUDA_MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernels[kind],
                                                                static_cast<int>(threads_), 0));
        stays_ = kind != LAUNCH && blocks_ <= static_cast<uint32_t>(each * (processors - 1));
        CUDA_MUST(cudaDeviceSynchronize());
        if (has_link()) {
            open_link();
        }
        view_.link.readers = blocks_;
        if (stays_) {
            launch(0, UINT64_MAX / 2);
        }
    }
    ~scale()
    {
        *static_cast<volatile uint32_t *>(stop_) = 1;
        if (link_ != nullptr) {
            wic_link_abort(link_);
        }
        CUDA_MUST(cudaStreamSynchronize(stream_));
        if (link_ != nullptr) {
            (void)wic_link_join(link_, 5000000000);
            (void)wic_link_destroy(link_);
        }
        for (void *memory : pinned_) {
            CUDA_MUST(cudaFreeHost(memory));
        }
        for (void *memory : managed_) {
            CUDA_MUST(cudaFree(memory));
        }
        CUDA_MUST(cudaFreeHost(stop_));
        CUDA_MUST(cudaFreeHost(desk_));
        CUDA_MUST(cudaFree(arrived_));
        CUDA_MUST(cudaStreamDestroy(stream_));
    }

    // Called for each frame in order, before post.
    void expect(uint64_t frame)
    {
        if (!stays_ && kind_ != LAUNCH) {
            launch(frame, 1);
        }
    }
    void post(uint64_t frame)
    {
        if (kind_ == LAUNCH) {
            launch(frame, 1);
        } else if (link_ != nullptr) {
            const wic_link_tile tile = {
                frame, units_, units_ * sizeof(uint32_t), units_ * sizeof(uint32_t), nullptr, 0};
            if (wic_link_post(link_, &tile) != 0) {
                bench_fail("a frame is refused", __LINE__);
            }
        } else {
            __atomic_store_n(&view_.posted[frame % slots], frame + 1, __ATOMIC_RELEASE);
        }
    }
    bool is_done(uint64_t frame)
    {
        if (link_ != nullptr && ++looks_ % 4096 == 0) {
            wic_link_beat(link_);
        }
        return link_ != nullptr
                   ? wic_link_done(link_, frame)
                   : __atomic_load_n(&view_.link.done[frame & 31], __ATOMIC_ACQUIRE) == frame + 1;
    }
    void poison(uint64_t frame)
    {
        memset(out_ + frame % slots * units_, 0xa5, units_ * sizeof(uint32_t));
    }
    uint64_t wrong(uint64_t frame) const
    {
        uint64_t count = 0;
        const size_t at = frame % slots * units_;
        for (size_t i = at; i < at + units_; i++) {
            count += out_[i] != result_of(in_[i], frame);
        }
        return count;
    }
    bool stays() const
    {
        return stays_;
    }

  private:
    bool has_link() const
    {
        return kind_ == GUEST || kind_ == ELECTED || kind_ == EVERY;
    }
    template <class T> void take(size_t bytes, T **to)
    {
        void *memory = nullptr;
        if (kind_ == MANAGED) {
            CUDA_MUST(cudaMallocManaged(&memory, bytes));
            managed_.push_back(memory);
        } else {
            CUDA_MUST(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped));
            pinned_.push_back(memory);
        }
        *to = static_cast<T *>(memory);
    }
    void open_link()
    {
        wic_link_options o = {};
        wic_work work = {};
        wic_gpu gpu = {};
        int number = 0;
        CUDA_MUST(cudaGetDevice(&number));
        work.warps = 1;
        if (wic_gpu_read(number, &gpu) != 0 ||
            wic_transfer_plan_whole(&gpu, WIC_IN_PLACE, units_, &work, &o.plan) != 0) {
            bench_fail(wic_link_why(), __LINE__);
        }
        o.plan.blocks = o.plan.pulls = 1;
        o.in = in_;
        o.out = out_;
        o.in_stride = o.out_stride = units_ * sizeof(uint32_t);
        o.in_slots = o.out_slots = slots;
        o.kernel = reinterpret_cast<const void *>(host_guests);
        o.argument = &desk_;
        if (wic_link_create(&o, &link_) != 0 || wic_link_start(link_, 0, 0) != 0) {
            bench_fail(wic_link_why(), __LINE__);
        }
        while (__atomic_load_n(&desk_->is_open, __ATOMIC_ACQUIRE) == 0) {
        }
        view_.link = wic_guest_view_of(desk_->view, blocks_, limit_ns);
    }
    void launch(uint64_t first, uint64_t frames)
    {
        void *arguments[] = {&view_, &first, &frames};
        CUDA_MUST(
            cudaLaunchKernel(kernels[kind_], dim3(blocks_), dim3(threads_), arguments, 0, stream_));
    }

    const way kind_;
    const uint32_t units_;
    scale_view view_ = {};
    uint32_t blocks_ = 0, threads_ = 0, *in_ = nullptr, *out_ = nullptr, *stop_ = nullptr;
    uint32_t *arrived_ = nullptr;
    wic_guest_desk *desk_ = nullptr;
    wic_link *link_ = nullptr;
    bool stays_ = false;
    uint64_t looks_ = 0;
    cudaStream_t stream_ = nullptr;
    std::vector<void *> pinned_, managed_;
};

struct times {
    double one_us = 0, each_us = 0; // median of one frame at a time; mean with all slots full
    uint64_t wrong = 0;
    bool stays = false, in_time = true;
};

bool wait_for(scale &of, uint64_t frame)
{
    const double begin = bench_seconds();
    for (uint32_t turn = 1; !of.is_done(frame); turn++) {
        if (turn % 1024 == 0 && bench_seconds() - begin > 4.0) {
            return false;
        }
    }
    return true;
}

times measure(way kind, uint32_t threads)
{
    times t;
    scale of(kind, threads);
    t.stays = of.stays();
    uint64_t frame = 0;
    for (; frame < frames_checked && t.in_time; frame++) {
        of.poison(frame);
        of.expect(frame);
        of.post(frame);
        t.in_time = wait_for(of, frame);
        t.wrong += t.in_time ? of.wrong(frame) : 0;
    }
    std::vector<double> one;
    for (const double begin = bench_seconds();
         t.in_time && one.size() < frames_most && bench_seconds() - begin < measure_s; frame++) {
        of.expect(frame);
        const double posted = bench_seconds();
        of.post(frame);
        t.in_time = wait_for(of, frame);
        one.push_back((bench_seconds() - posted) * 1e6);
    }
    t.wrong += t.in_time ? of.wrong(frame - 1) : 0;
    const uint64_t first = frame;
    uint64_t sent = frame;
    const double begin = bench_seconds();
    while (t.in_time && frame - first < 4 * frames_most && bench_seconds() - begin < measure_s) {
        while (sent - frame < slots) {
            of.expect(sent);
            of.post(sent++);
        }
        t.in_time = wait_for(of, frame);
        frame++;
    }
    t.each_us = (bench_seconds() - begin) / static_cast<double>(frame - first) * 1e6;
    for (; t.in_time && frame < sent; frame++) {
        t.in_time = wait_for(of, frame);
    }
    for (uint64_t f = sent - slots; t.in_time && f < sent; f++) {
        t.wrong += of.wrong(f);
    }
    std::sort(one.begin(), one.end());
    t.one_us = one.empty() ? NAN : one[one.size() / 2];
    return t;
}
} // namespace

bool measure_guests()
{
    bool good = true;
    printf("us of a frame of a word for each thread, one at a time (median) / with %u in slots; "
           "*: a launch for each frame\n%9s",
           slots, "threads");
    for (const char *name : way_names) {
        printf(" %19s", name);
    }
    printf(" %22s\n", "managed, elected/guest");
    for (const uint32_t threads :
         {64u, 128u, 256u, 512u, 1024u, 4096u, 16384u, 65536u, 262144u, 1048576u}) {
        times of[WAYS];
        printf("%9u", threads);
        for (int kind = 0; kind < WAYS; kind++) {
            of[kind] = measure(static_cast<way>(kind), threads);
            const times &t = of[kind];
            good = good && t.wrong == 0 && t.in_time;
            if (t.wrong > 0 || !t.in_time) {
                printf(" FAIL: %llu wrong%s", static_cast<unsigned long long>(t.wrong),
                       t.in_time ? "" : ", late");
            } else {
                printf(" %8.1f /%8.1f%c", t.one_us, t.each_us, t.stays ? ' ' : '*');
            }
            fflush(stdout);
        }
        printf(" %10.2f %10.2f\n", of[MANAGED].one_us / of[GUEST].one_us,
               of[ELECTED].one_us / of[GUEST].one_us);
        fflush(stdout);
    }
    return good;
}
