// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Strategies with a resident kernel: wic itself, and three that poll. All four get their chunks
// through the same link, so that only the waiting and the transport of the data differ. The polling
// ones use the common scheme: every warp that needs a chunk polls its flag (the host's, or the
// mirror that one Monitor warp keeps), then the block loads from and stores to pinned memory,
// coalesced, 16 bytes a thread.
#include "wic/bench/ndvi.cuh"
#include "wic/device/wic_device.cuh"

#include <cerrno>

__global__ void __launch_bounds__(1024) ndvi_parked(const __grid_constant__ wic_view view)
{
    wic_resident(view, [](const wic_piece &piece) {
        ndvi_lines(piece.in, piece.out, piece.units, piece.thread, piece.threads);
    });
}

// Pixels of the chunk once its flag is up; UINT64_MAX: leave.
template <wait_kind kind> __device__ uint64_t poll(const wic_view &view, uint64_t tile)
{
    const uint64_t slot = tile & view.ring_mask;
    for (uint32_t look = 0;; look++) {
        const uint64_t word = kind == WAIT_POLL_HOST ? wic_load_system(&view.doorbell[slot])
                                                     : wic_load_device(&view.ready_board[slot]);
        if (static_cast<uint32_t>(word >> 32) == static_cast<uint32_t>(tile + 1)) {
            return static_cast<uint32_t>(word);
        }
        if (look % 64 == 0) {
            const uint64_t end = kind == WAIT_POLL_HOST ? wic_load_system(&view.control->end)
                                                        : wic_load_device(&view.state->end);
            if (tile >= end || end == WIC_LINK_ABORT) {
                return UINT64_MAX;
            }
        }
        if (kind == WAIT_POLL_NANOSLEEP) {
            __nanosleep(100);
        }
    }
}

// Among the working warps.
__device__ void sync_working(const wic_view &view)
{
    asm volatile("bar.sync 1, %0;" ::"r"(32 * view.plan.warps) : "memory");
}

template <wait_kind kind>
__global__ void __launch_bounds__(1024) ndvi_polling(const __grid_constant__ wic_view view)
{
    const wic_transfer_plan &plan = view.plan;
    if (threadIdx.x == 0 && wic_add_device(&view.state->started, 1) == gridDim.x - 1) {
        wic_store_system(view.started, 1);
    }
    if (threadIdx.x < 32 * WIC_SERVICE_WARPS) {
        if (threadIdx.x < 32 && blockIdx.x == 0 && kind != WAIT_POLL_HOST) {
            wic_monitor(view);
        }
        return;
    }
    const uint32_t thread = threadIdx.x - 32 * WIC_SERVICE_WARPS, threads = 32 * plan.warps;
    const uint32_t piece_units = plan.piece_units;
    for (uint64_t i = blockIdx.x;; i += gridDim.x) {
        const uint64_t tile = i / plan.pieces;
        const uint32_t piece = static_cast<uint32_t>(i % plan.pieces);
        const uint64_t found = poll<kind>(view, tile);
        if (found == UINT64_MAX) {
            return;
        }
        const uint32_t units = static_cast<uint32_t>(found);
        if (piece * piece_units >= units) {
            continue;
        }
        ndvi_lines(view.in + tile % view.in_slots * view.in_stride +
                       static_cast<uint64_t>(piece) * plan.in_piece,
                   view.out + tile % view.out_slots * view.out_stride +
                       static_cast<uint64_t>(piece) * plan.out_piece,
                   min(piece_units, units - piece * piece_units), thread, threads);
        __threadfence_system();
        sync_working(view);
        if (thread == 0) {
            uint32_t *arrived = &view.arrived[tile & view.ring_mask];
            const uint32_t pieces = (units + piece_units - 1) / piece_units;
            if (pieces == 1 || wic_add_device(arrived, 1) == pieces - 1) {
                *arrived = 0;
                wic_store_system(&view.done[tile & view.ring_mask], tile + 1);
            }
        }
    }
}

const void *resident_kernel(wait_kind kind)
{
    switch (kind) {
    case WAIT_POLL_HOST:
        return reinterpret_cast<const void *>(ndvi_polling<WAIT_POLL_HOST>);
    case WAIT_POLL_DEVICE:
        return reinterpret_cast<const void *>(ndvi_polling<WAIT_POLL_DEVICE>);
    case WAIT_POLL_NANOSLEEP:
        return reinterpret_cast<const void *>(ndvi_polling<WAIT_POLL_NANOSLEEP>);
    default:
        return reinterpret_cast<const void *>(ndvi_parked);
    }
}

namespace
{
class resident : public strategy
{
  public:
    resident(wic_link *link, const bench_pool &pool)
        : strategy(pool.slots), link_(link), bytes_(static_cast<uint32_t>(pool.chunk))
    {
        if (wic_link_start(link_, 0, 0) != 0) {
            bench_fail("a resident kernel does not start", __LINE__);
        }
    }

    ~resident() override
    {
        wic_link_abort(link_);
        wic_link_join(link_, WIC_LINK_BEAT_NS);
        wic_link_destroy(link_);
    }

    void submit(uint64_t end) override
    {
        for (; next_ < end; next_++) {
            const wic_link_tile tile = {next_, bytes_ / in_unit, bytes_, nullptr};
            if (wic_link_post(link_, &tile) != 0) {
                bench_fail("a tile cannot be posted", __LINE__);
            }
        }
    }

    uint64_t poll() override
    {
        if (++looks_ % beat_looks == 0) {
            wic_link_beat(link_);
        }
        if (looks_ % check_looks == 0 && wic_link_running(link_) != 1) {
            bench_fail("a resident kernel left before its time", __LINE__);
        }
        while (done_ < next_ && wic_link_done(link_, done_)) {
            done_++;
        }
        return done_;
    }

    double leave_ms() override
    {
        const double start = bench_seconds();
        wic_link_close(link_, next_);
        while (wic_link_running(link_) > 0) {
        }
        return 1e3 * (bench_seconds() - start);
    }

  private:
    static constexpr uint64_t beat_looks = 1 << 10, check_looks = 1 << 20;

    wic_link *link_;
    uint32_t bytes_;
    uint64_t next_ = 0, done_ = 0, looks_ = 0;
};
} // namespace

wic_link_options bench_link_options(wait_kind kind, const bench_pool &pool,
                                    const wic_transfer_plan &plan)
{
    wic_link_options options = {};
    options.in = pool.in;
    options.out = pool.out;
    options.in_stride = pool.in_stride;
    options.out_stride = pool.out_stride;
    options.in_slots = options.out_slots = pool.slots;
    options.plan = plan;
    options.kernel = resident_kernel(kind);
    return options;
}

std::unique_ptr<strategy> make_resident(wait_kind kind, const bench_pool &pool,
                                        const wic_transfer_plan &plan)
{
    const wic_link_options options = bench_link_options(kind, pool, plan);
    wic_link *link;
    const int rc = wic_link_create(&options, &link);
    if (rc == -E2BIG || rc == -ENOSPC) {
        return nullptr;
    }
    if (rc != 0) {
        bench_fail("a link cannot be made", __LINE__);
    }
    return std::make_unique<resident>(link, pool);
}
