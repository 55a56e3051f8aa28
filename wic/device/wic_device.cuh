// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_DEVICE_CUH
#define WIC_DEVICE_CUH
// The device side of a link (wic/device/link.h): a kernel that stays while tiles flow and whose
// working warps are parked by the hardware while there is nothing for them.
//
//   __global__ void kernel(const __grid_constant__ wic_view view, params p)
//   {
//       wic_resident(view, [&](const wic_piece &piece) { ... piece.in -> piece.out ... });
//   }
//
// The warps of a block have parts to play. Each stage (an input and an output buffer in shared
// memory) goes round among them through three barriers:
//
//   Activator --full--> working warps --done--> Publisher --empty--> Activator
//
//   Interrupter  wic_wait: a working warp whose next stage is not full is parked at its barrier. It
//                never looks at global or host memory.
//   Monitor      one warp of the grid: reads the host's doorbell over PCIe, keeps the board.
//   Activator    one warp a block: looks at the board, for the tile of the block's next piece; is
//                it there, it starts the transfer and waits for its bytes: they wake it, and it
//                opens the barrier to the parked.
//   Publisher    one warp a block: takes results to pinned memory; the last piece of a tile
//                publishes it. Apart from the Activator, so that neither waits for the other's
//                transport.
//
// The way out: at the end, on abort and when host or Monitor fall silent, the Activator fills a
// stage with nothing (WIC_LEAVE) behind the pieces under way; each warp that meets it leaves. So
// the Activator alone waits for things outside its block, with a look at the abort word and a time
// limit; what the others are parked for comes from it, or from work that ends by itself.
#include "wic/device/activator.cuh"
#include "wic/device/monitor.cuh"

// --- Interrupter ---

// Parks until the stage is full. False: leave.
__device__ __forceinline__ bool wic_wait(const wic_block &block, const wic_turn &turn,
                                         wic_piece *out_piece)
{
    wic_barrier_park(block.full(turn.stage), turn.round);
    const volatile wic_stage *stage = block.stage(turn.stage);
    const wic_chunk_plan &plan = block.view.plan;
    out_piece->in = plan.in_piece > 0 ? block.in(turn.stage) : stage->in;
    out_piece->user = block.user(turn.stage);
    out_piece->tile = stage->tile;
    out_piece->piece = stage->piece;
    out_piece->first = out_piece->piece * plan.piece_units;
    out_piece->units = stage->units;
    out_piece->tile_out = stage->out;
    out_piece->out = plan.results == WIC_PUSH_STORES
                         ? stage->out + static_cast<uint64_t>(out_piece->piece) * plan.out_piece
                         : block.out(turn.stage);
    return out_piece->tile != WIC_LEAVE;
}

// Hands the warp's part of the results to the Publisher. The stage is empty when it is done, too.
__device__ __forceinline__ void wic_publish(const wic_block &block, const wic_turn &turn)
{
    wic_results_written();
    wic_barrier_arrive(block.done(turn.stage));
    wic_barrier_arrive(block.empty(turn.stage));
}

// --- Publisher ---

__device__ inline void wic_publisher(const wic_block &block)
{
    const wic_view &view = block.view;
    const wic_chunk_plan &plan = view.plan;
    for (wic_turn turn(view);; turn.next(plan.depth)) {
        wic_barrier_park(block.done(turn.stage), turn.round);
        const volatile wic_stage *stage = block.stage(turn.stage);
        const uint64_t tile = stage->tile;
        if (tile == WIC_LEAVE) {
            return;
        }
        const uint32_t pieces = stage->pieces;
        if (plan.results == WIC_PUSH_BULK) {
            wic_push(stage->out + static_cast<uint64_t>(stage->piece) * plan.out_piece,
                     block.out(turn.stage), (stage->units * plan.out_unit + 15) / 16 * 16);
            wic_push_read();
        }
        wic_barrier_arrive(block.empty(turn.stage));
        if (plan.results == WIC_PUSH_BULK) {
            wic_push_done();
        }
        if (wic_lane() == 0) {
            uint32_t *arrived = &view.arrived[tile & view.ring_mask];
            const bool last = pieces == 1 || wic_add_device(arrived, 1) == pieces - 1;
            if (last) {
                if (pieces > 1) {
                    *arrived = 0; // for the tile that comes here next; ordered by the release
                }
                wic_store_system(&view.done[tile & view.ring_mask], tile + 1);
            }
        }
        __syncwarp();
    }
}

// --- all of it ---

// Sets the barriers up and tells the host once every block is there.
__device__ inline void wic_enter(const wic_block &block)
{
    const wic_view &view = block.view;
    if (threadIdx.x == 0) {
        for (uint32_t stage = 0; stage < view.plan.depth; stage++) {
            wic_barrier_init(block.full(stage), 1);
            wic_barrier_init(block.done(stage), view.plan.warps);
            wic_barrier_init(block.empty(stage), view.plan.warps + 1);
            wic_bytes_init(block.bytes(stage));
        }
        if (wic_add_device(&view.state->started, 1) == gridDim.x - 1) {
            wic_store_system(view.started, 1);
        }
    }
    __syncthreads();
}

// work(const wic_piece &) is called by all threads of the working warps, for each piece.
template <class Work> __device__ __forceinline__ void wic_resident(const wic_view &view, Work work)
{
    extern __shared__ __align__(128) unsigned char wic_shared[];
    const wic_block block = {view, wic_shared};
    wic_enter(block);
    const uint32_t warp = threadIdx.x / 32;
    if (warp == 0) {
        wic_activate(block);
    } else if (warp == 1) {
        wic_publisher(block);
    } else if (warp == 2) {
        if (blockIdx.x == 0) {
            wic_monitor(view);
        }
    } else {
        wic_piece piece;
        piece.thread = threadIdx.x - 32 * WIC_SERVICE_WARPS;
        piece.threads = 32 * view.plan.warps;
        piece.work = block.in(view.plan.depth);
        wic_turn turn(view);
        for (; wic_wait(block, turn, &piece); turn.next(view.plan.depth)) {
            work(piece);
            wic_publish(block, turn);
        }
        wic_barrier_arrive(block.done(turn.stage)); // the Publisher meets WIC_LEAVE, too
    }
}
#endif
