// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_DEVICE_CUH
#define WIC_DEVICE_CUH
// The device side of a link (wic/device/link.h): a resident kernel whose working warps the hardware
// parks while there is no piece for them.
//
//   __global__ void kernel(const __grid_constant__ wic_view view, params p)
//   {
//       wic_resident(view, [&](const wic_piece &piece) { ... piece.in -> piece.out ... });
//   }
//
// What the work must not do. It runs in the working warps alone, plan.warps of the block's
// plan.warps + WIC_SERVICE_WARPS:
//   - no __syncthreads(), no block primitive of CUB or block sync of cooperative groups: these wait
//     for all threads of the block, and the service warps never arrive. piece.sync() is the barrier
//     of the working threads, piece.thread and piece.threads number them. __syncwarp() and
//     primitives of a warp are fine.
//   - no named barriers of its own: wic uses all 16.
//   - no return of some threads before others in the midst of a piece, if they meet at
//   piece.sync().
//   - no wait for anything outside the block. A piece that is not done within hang_ns ends the run
//     by -ETIMEDOUT.
//   - no static shared memory that the plan does not leave room for, and no dynamic shared memory
//     but piece.work.
// The kernel is launched with 32 * (plan.warps + WIC_SERVICE_WARPS) threads: __launch_bounds__ must
// allow as many. A lower bound, or more registers than a block of that size has, is -E2BIG at open.
//
// The warps of a block have roles. Each stage (an input and an output buffer in shared memory)
// passes from role to role through three barriers:
//
//   Activator --full--> working warps --done--> Publisher --empty--> Activator
//
//   Interrupter  wic_wait: a working warp whose next stage is not full is parked at its barrier. It
//                polls neither global nor host memory.
//   Monitor      one warp of the grid: reads the host's doorbell over PCIe, keeps the ready board.
//   Activator    one warp a block: polls the ready board for the tile of the block's next piece,
//                starts the transfer, waits for its bytes and opens the barrier at which the
//                working warps are parked.
//   Publisher    one warp a block: copies results to pinned memory; the last piece of a tile
//                publishes it. It is not the Activator, so that neither waits for the other's
//                copies.
//
// Shutdown: at the end, on abort and when the heartbeat of host or Monitor stops, the Activator
// marks a stage with WIC_LEAVE after the pieces in flight; each warp that gets this stage returns.
// So the Activator alone waits for events outside its block, with a check of the abort word and a
// time limit; the other warps wait for it, or for work that ends by itself.
#include "wic/device/activator.cuh"
#include "wic/device/monitor.cuh"

// --- Interrupter ---

// What a full stage holds.
__device__ __forceinline__ void
wic_describe(const wic_block &block, const wic_stage_position &position, wic_piece *out_piece)
{
    const volatile wic_stage *stage = block.stage(position.stage);
    const wic_transfer_plan &plan = block.view.plan;
    out_piece->in = plan.in_piece > 0 ? block.in(position.stage) : stage->in;
    out_piece->user = block.user(position.stage);
    out_piece->tile = stage->tile;
    out_piece->piece = stage->piece;
    out_piece->first = out_piece->piece * plan.piece_units;
    out_piece->units = stage->units;
    out_piece->tile_out = stage->out;
    out_piece->out = plan.results == WIC_PUSH_STORES
                         ? stage->out + static_cast<uint64_t>(out_piece->piece) * plan.out_piece
                         : block.out(position.stage);
}

// Parks until the stage is full. False: leave.
__device__ __forceinline__ bool wic_wait(const wic_block &block, const wic_stage_position &position,
                                         wic_piece *out_piece)
{
    wic_barrier_park(block.full(position.stage), position.round);
    wic_describe(block, position, out_piece);
    return out_piece->tile != WIC_LEAVE;
}

// Passes the warp's part of the results to the Publisher, and the stage's input buffer back to the
// Activator.
__device__ __forceinline__ void wic_publish(const wic_block &block,
                                            const wic_stage_position &position)
{
    wic_results_written();
    if (wic_lane() == 0) {
        atomicAdd_block(block.passed(), 1);
    }
    wic_barrier_arrive(block.done(position.stage));
    wic_barrier_arrive(block.empty(position.stage));
}

// --- Publisher ---

// Whether the working warps have passed on the piece after those that were `taken`: then parking
// for it takes no time.
__device__ __forceinline__ bool wic_next_is_done(const wic_block &block, uint32_t taken)
{
    const uint32_t warps = block.view.plan.warps;
    const uint32_t passed = wic_lane() == 0 ? atomicAdd_block(block.passed(), 0) : 0;
    return __shfl_sync(~0u, passed, 0) - taken * warps >= warps;
}

// Counts a piece whose results are stored; true: it was the last one of its tile.
__device__ __forceinline__ bool wic_completes_tile(const wic_view &view, uint64_t tile,
                                                   uint32_t pieces)
{
    uint32_t *arrived = &view.arrived[tile & view.ring_mask];
    if (pieces == 1) {
        return true;
    }
    const bool last = wic_add_device(arrived, 1) == pieces - 1;
    if (last) {
        *arrived = 0; // for the next tile of this entry; ordered by the fence
    }
    return last;
}

// A fence for results in the host's memory waits for the link, so pieces that are done at the same
// time share one: lane n holds the n-th of them.
__device__ inline void wic_publisher(const wic_block &block)
{
    const wic_view &view = block.view;
    const wic_transfer_plan &plan = view.plan;
    const uint32_t lane = wic_lane();
    uint32_t taken = 0;
    bool leave = false;
    for (wic_stage_position position(view); !leave;) {
        uint64_t tile = WIC_LEAVE; // of this lane
        uint32_t pieces = 0, group = 0;
        do {
            wic_barrier_park(block.done(position.stage), position.round);
            const volatile wic_stage *stage = block.stage(position.stage);
            leave = stage->tile == WIC_LEAVE;
            if (leave) {
                break;
            }
            if (lane == group) {
                tile = stage->tile;
                pieces = stage->pieces;
            }
            if (plan.results == WIC_PUSH_BULK) {
                wic_push(stage->out + static_cast<uint64_t>(stage->piece) * plan.out_piece,
                         block.out(position.stage), (stage->units * plan.out_unit + 15) / 16 * 16);
                wic_push_read();
            }
            wic_barrier_arrive(block.empty(position.stage));
            position.next(plan.depth);
            group++;
            taken++;
        } while (group < plan.depth && wic_next_is_done(block, taken));
        if (plan.results == WIC_PUSH_BULK) {
            wic_push_done();
        }
        const bool last = lane < group && wic_completes_tile(view, tile, pieces);
        if (last) {
            wic_store_system(&view.done[tile & view.ring_mask], tile + 1);
        }
        __syncwarp();
    }
}

// --- the kernel ---

// Initialises the barriers; the last block to do so tells the host that all are resident.
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
        *block.passed() = 0;
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
        wic_stage_position position(view);
        for (; wic_wait(block, position, &piece); position.next(view.plan.depth)) {
            work(piece);
            wic_publish(block, position);
        }
        wic_barrier_arrive(block.done(position.stage)); // the Publisher gets WIC_LEAVE, too
    }
}
#endif
