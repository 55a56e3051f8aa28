// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The resident kernels: wic's own, and others that get their chunks through the same link, so that
// only the waiting and the transport of the data differ. The polling ones use the common scheme:
// every warp that needs a chunk polls its flag (the host's, or the mirror that one Monitor warp
// keeps), then the block loads from and stores to pinned memory, coalesced, 16 bytes a thread.
#include "wic/bench/strategies/resident.cuh"

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
        } else if (kind == WAIT_POLL_NAPS) {
            wic_nap(look);
        }
    }
}

// Among the working warps.
__device__ void sync_working(const wic_view &view)
{
    asm volatile("bar.sync 1, %0;" ::"r"(32 * view.plan.warps) : "memory");
}

// Among those and the elected warp.
__device__ void sync_elected(const wic_view &view)
{
    asm volatile("bar.sync 1, %0;" ::"r"(32 * view.plan.warps + 32) : "memory");
}

template <wait_kind kind>
__global__ void __launch_bounds__(1024) ndvi_polling(const __grid_constant__ wic_view view)
{
    const wic_transfer_plan &plan = view.plan;
    bench_enter(view);
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
                   bench_results_of(view, tile, piece),
                   min(piece_units, units - piece * piece_units), thread, threads);
        __threadfence_system();
        sync_working(view);
        if (thread == 0) {
            bench_piece_done(view, tile, (units + piece_units - 1) / piece_units);
        }
    }
}

// One warp of a block polls the mirror as wic's Activator does, pulls the piece as it does, and a
// barrier of the block lets the others at it. Nothing overlaps within a block: several blocks share
// a multiprocessor instead.
__global__ void __launch_bounds__(1024) ndvi_elected(const __grid_constant__ wic_view view)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const wic_block block = {view, shared};
    const wic_transfer_plan &plan = view.plan;
    if (threadIdx.x == 0) {
        wic_bytes_init(block.bytes(0));
    }
    bench_enter(view);
    if (threadIdx.x / 32 == 2 && blockIdx.x == 0) {
        wic_monitor(view);
    }
    if (threadIdx.x / 32 == 1 || threadIdx.x / 32 == 2) {
        return;
    }
    const uint32_t thread = threadIdx.x < 32 ? 0 : threadIdx.x - 32 * WIC_SERVICE_WARPS;
    const volatile wic_stage *stage = block.stage(0);
    wic_cursor at = {blockIdx.x / plan.pieces, blockIdx.x % plan.pieces};
    wic_credits credits;
    uint64_t starved = 0;
    for (uint32_t round = 0;; round++, at.next(plan.pieces)) {
        if (threadIdx.x < 32) {
            const uint64_t units = wic_ready_board_wait(view, at.tile, credits, &starved);
            const bool leave = units == UINT64_MAX;
            if (!leave) { // all chunks are full ones
                wic_pull(block.bytes(0),
                         {block.in(0),
                          view.in + (view.in_first + at.tile) % view.in_slots * view.in_stride +
                              static_cast<uint64_t>(at.piece) * plan.in_piece,
                          plan.in_piece},
                         {nullptr, nullptr, 0});
                wic_pulled(block.bytes(0), round);
                credits.pass(view);
            }
            wic_fill_stage(block, wic_stage_position(view),
                           {leave ? WIC_LEAVE : at.tile, nullptr, nullptr, at.piece, plan.pieces,
                            plan.piece_units});
        }
        sync_elected(view);
        if (stage->tile == WIC_LEAVE) {
            return;
        }
        if (threadIdx.x >= 32) {
            ndvi_lines(block.in(0), bench_results_of(view, at.tile, at.piece), plan.piece_units,
                       thread, 32 * plan.warps);
            __threadfence_system();
        }
        sync_elected(view);
        if (threadIdx.x == 0) {
            bench_piece_done(view, at.tile, plan.pieces);
        }
    }
}

// wic's kernel where a copy engine brings the chunks: a unit is a line.
__global__ void __launch_bounds__(1024) ndvi_whole(const __grid_constant__ wic_view view)
{
    wic_resident(view, [](const wic_piece &piece) {
        ndvi_lines(static_cast<const unsigned char *>(piece.in) + size_t{piece.first} * line_in,
                   static_cast<unsigned char *>(piece.tile_out) + size_t{piece.first} * line_out,
                   piece.units * line_units, piece.thread, piece.threads);
    });
}

// Until the host ends the link or its heartbeat stops. Thread 0 looks a thousand times a second,
// the others are at a barrier.
__device__ void sleep(const wic_view &view)
{
    wic_word_pair seen = {WIC_LINK_OPEN, 0};
    bench_enter(view);
    if (threadIdx.x == 0) {
        uint64_t since = wic_now();
        while (seen.first == WIC_LINK_OPEN && wic_now() - since < view.beat_ns) {
            const wic_word_pair now = wic_load_pair_system(&view.control->end);
            since = now.second != seen.second ? wic_now() : since;
            seen = now;
            __nanosleep(1000000);
        }
    }
    __syncthreads();
}

// The plan pulls, so it sleeps; the other branch is there for its registers.
__global__ void __launch_bounds__(1024) ndvi_asleep(const __grid_constant__ wic_view view)
{
    if (view.plan.in_piece > 0) {
        sleep(view);
    } else {
        wic_resident(view, [](const wic_piece &piece) {
            ndvi_lines(piece.in, piece.out, piece.units, piece.thread, piece.threads);
        });
    }
}

const void *resident_kernel(wait_kind kind)
{
    switch (kind) {
    case WAIT_ASLEEP:
        return reinterpret_cast<const void *>(ndvi_asleep);
    case WAIT_POLL_HOST:
        return reinterpret_cast<const void *>(ndvi_polling<WAIT_POLL_HOST>);
    case WAIT_POLL_DEVICE:
        return reinterpret_cast<const void *>(ndvi_polling<WAIT_POLL_DEVICE>);
    case WAIT_POLL_NANOSLEEP:
        return reinterpret_cast<const void *>(ndvi_polling<WAIT_POLL_NANOSLEEP>);
    case WAIT_POLL_NAPS:
        return reinterpret_cast<const void *>(ndvi_polling<WAIT_POLL_NAPS>);
    case WAIT_POLL_ELECTED:
        return reinterpret_cast<const void *>(ndvi_elected);
    case WAIT_PARKED_WHOLE:
        return reinterpret_cast<const void *>(ndvi_whole);
    case WAIT_PIPELINE:
        return pipeline_kernel();
    default:
        return reinterpret_cast<const void *>(ndvi_parked);
    }
}
