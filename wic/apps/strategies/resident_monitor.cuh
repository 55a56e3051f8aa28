// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_RESIDENT_MONITOR_CUH
#define WIC_APP_RESIDENT_MONITOR_CUH
// Resident strategies with the Monitor of wic/device: one warp of the grid polls the host's
// doorbell and keeps the ready board in device memory, which all blocks poll.
#include "wic/apps/strategies/resident_kernel.cuh"
#include "wic/device/activator.cuh"
#include "wic/device/monitor.cuh"

// The Monitor has the last block for itself. Thread 0 of each other block polls the ready board,
// and the block reads chunks where they are.
template <uint32_t slices_, uint32_t density>
class resident_mirrored : public resident_threads, public resident_shape<density>
{
  public:
    static constexpr uint32_t slices = slices_, shared_bytes = 0;
    static constexpr uint32_t workers = resident_shape<density>::threads / 32;
    using argument = wic_view;

    static constexpr uint32_t grid(uint32_t blocks)
    {
        return blocks + 1;
    }

    __device__ explicit resident_mirrored(const uint64_t *board)
        : resident_threads(gridDim.x - 1), board_(board)
    {
    }
    template <class A>
    static __device__ void run(const resident_view &r, const typename A::view &v,
                               const wic_view &view)
    {
        if (blockIdx.x < gridDim.x - 1) {
            resident_mirrored way(view.ready_board);
            resident_party<A, resident_mirrored>(v, r, way).run();
        } else if (threadIdx.x < 32) {
            wic_monitor<true>(view);
        }
    }

    __device__ uint64_t take(const resident_view &r, uint32_t number, size_t offset, uint32_t,
                             const void **from, bool must_wait)
    {
        const auto see = [&](const uint64_t *, uint32_t of) {
            return mapped(&board_[of & r.bell_mask], of);
        };
        *from = r.down + size_t(number & r.down_mask) * r.down_bytes + offset;
        return share(threadIdx.x == 0 ? look(r, number, must_wait, see) : 0);
    }

  private:
    const uint64_t *board_;
};

// --- host -------------------------------------------------------------------------------------

// The words of the Monitor, and the heartbeat.
class resident_monitor_side : public resident_no_side
{
  public:
    template <class A>
    explicit resident_monitor_side(const app_place<A> &place)
        : resident_no_side(place), limit_ns_(place.limit_ns)
    {
        pinned_.pinned(sizeof(wic_link_control));
    }
    wic_view ready(const resident_view &r, uint32_t blocks, uint32_t warps, cudaStream_t stream);
    void beat()
    {
        if (++beats_ % 256 == 0) {
            __atomic_fetch_add(&control()->beat, 1, __ATOMIC_RELAXED);
        }
    }
    void over(uint32_t chunks)
    {
        __atomic_store_n(&control()->end, chunks, __ATOMIC_RELEASE);
    }
    void stop()
    {
        __atomic_store_n(&control()->end, WIC_LINK_ABORT, __ATOMIC_RELEASE);
    }

  private:
    wic_link_control *control() const
    {
        return reinterpret_cast<wic_link_control *>(pinned_.at());
    }

    static constexpr size_t blocks_most = 4096;

    uint64_t limit_ns_, beats_ = 0;
    resident_allocation pinned_, device_;
    size_t device_bytes_ = 0;
};

inline wic_view resident_monitor_side::ready(const resident_view &r, uint32_t blocks, uint32_t,
                                             cudaStream_t stream)
{
    constexpr size_t line = 128;
    const size_t board = (r.bell_mask + 1) * sizeof(uint64_t);
    if (device_bytes_ == 0) {
        device_bytes_ = line + board + blocks_most * sizeof(uint64_t);
        device_.device(device_bytes_);
    }
    *control() = {WIC_LINK_OPEN, 0};
    const wic_link_state state = {WIC_LINK_OPEN, 0, 0, 0, 0, 0};
    static_assert(sizeof state <= line, "");
    APP_MUST(cudaMemsetAsync(device_.at(), 0, device_bytes_, stream));
    APP_MUST(cudaMemcpyAsync(device_.at(), &state, sizeof state, cudaMemcpyHostToDevice, stream));
    APP_MUST(cudaStreamSynchronize(stream));
    wic_view view = {};
    view.ring_mask = r.bell_mask;
    view.doorbell = r.doorbell;
    view.control = control();
    view.state = reinterpret_cast<wic_link_state *>(device_.at());
    view.ready_board = reinterpret_cast<uint64_t *>(device_.at(line));
    view.passed = reinterpret_cast<uint64_t *>(device_.at(line + board));
    view.beat_ns = limit_ns_;
    view.plan.blocks = view.plan.pulls = blocks;
    return view;
}
#endif
