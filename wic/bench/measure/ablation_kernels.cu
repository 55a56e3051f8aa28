// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic's kernel with its gate and its pull exchanged: the roles, the stages and the credit limiter
// are wic's. For full chunks only. (Without the limiter: a plan with as many pulls as blocks.)
// Code for architectures before sm_90 has no mbarrier; its bulk pull is what wic uses there.
#include "wic/bench/measure/ablation.cuh"
#include "wic/bench/base/ndvi.cuh"
#include "wic/device/wic_device.cuh"

namespace
{
// The round of each stage that is full, plus one; for the gates that spin.
__shared__ volatile uint32_t full_round[WIC_PLAN_DEPTH_MAX];

template <ablation_pull pull>
__device__ void fetch(const wic_block &block, const wic_stage_position &position,
                      const wic_copy_request &piece)
{
    if (pull == PULL_BULK) {
        wic_pull(block.bytes(position.stage), piece, {nullptr, nullptr, 0});
        wic_pulled(block.bytes(position.stage), position.round);
        return;
    }
    __syncwarp(); // one lane acquired the ready board's word
    const uint4 *from = static_cast<const uint4 *>(piece.pinned);
    uint4 *to = static_cast<uint4 *>(piece.shared);
    for (uint32_t i = wic_lane(); i < piece.bytes / 16; i += 32 * 8) {
        uint4 some[8];
#pragma unroll
        for (uint32_t k = 0; k < 8; k++) {
            if (i + 32 * k < piece.bytes / 16) {
                some[k] = __ldcv(from + i + 32 * k);
            }
        }
#pragma unroll
        for (uint32_t k = 0; k < 8; k++) {
            if (i + 32 * k < piece.bytes / 16) {
                to[i + 32 * k] = some[k];
            }
        }
    }
    __syncwarp();
}

__device__ void arrive(uint64_t *barrier)
{
#if WIC_MBARRIER
    if (wic_lane() == 0) {
        asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(
                         wic_shared_address(barrier))
                     : "memory");
    }
#endif
}

// By the Activator, when the stage is full. `leave`: nothing was pulled into it.
template <ablation_gate gate, ablation_pull pull>
__device__ void open(const wic_block &block, const wic_stage_position &position, bool leave)
{
    __syncwarp();
    if (gate == GATE_NAMED) {
        wic_barrier_arrive(block.full(position.stage));
    } else if (gate == GATE_MBARRIER) {
        if (pull == PULL_LOADS || leave) { // else the bytes have opened it
            arrive(block.bytes(position.stage));
        }
    } else {
        __threadfence_block();
        if (wic_lane() == 0) {
            full_round[position.stage] = position.round + 1;
        }
    }
}

// By a working warp.
template <ablation_gate gate>
__device__ void pass(const wic_block &block, const wic_stage_position &position, uint64_t tile)
{
    if (gate == GATE_NAMED) {
        wic_barrier_park(block.full(position.stage), position.round);
        return;
    }
    if (gate == GATE_MBARRIER) {
#if WIC_MBARRIER
        while (!wic_barrier_try(block.bytes(position.stage), position.round)) {
        }
#endif
        return;
    }
    const wic_view &view = block.view;
    const uint64_t *word = &view.ready_board[tile & view.ring_mask];
    for (uint32_t looks = 1; gate == GATE_BOARD; looks++) {
        if (wic_tiles_ahead(wic_load_device(word), tile) >= 0 ||
            (looks % 64 == 0 && full_round[position.stage] == position.round + 1)) {
            break; // it is there, or there are no more
        }
    }
    while (full_round[position.stage] != position.round + 1) {
    }
    __threadfence_block();
    __syncwarp();
}

template <ablation_gate gate, ablation_pull pull>
__device__ void activate(const wic_block &block, wic_cursor at)
{
    const wic_view &view = block.view;
    const wic_transfer_plan &plan = view.plan;
    uint64_t starved = 0;
    wic_credits credits;
    wic_stage_position position(view);
    for (;; at.next(plan.pieces), credits.pass(view), position.next(plan.depth)) {
        if (position.used) {
            wic_barrier_park(block.empty(position.stage), position.round - 1);
        }
        if (wic_ready_board_wait(view, at.tile, credits, &starved) == UINT64_MAX) {
            break;
        }
        const uint64_t in = (view.in_first + at.tile) % view.in_slots * view.in_stride;
        wic_fill_stage(block, position,
                       {at.tile, nullptr,
                        view.out + (view.out_first + at.tile) % view.out_slots * view.out_stride,
                        at.piece, plan.pieces, plan.piece_units});
        fetch<pull>(block, position,
                    {block.in(position.stage),
                     view.in + in + static_cast<uint64_t>(at.piece) * plan.in_piece,
                     plan.in_piece});
        open<gate, pull>(block, position, false);
    }
    wic_fill_stage(block, position, {WIC_LEAVE, nullptr, nullptr, 0, 0, 0});
    open<gate, pull>(block, position, true);
}

template <ablation_gate gate, ablation_pull pull>
__global__ void __launch_bounds__(1024) ndvi_ablated(const __grid_constant__ wic_view view)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const wic_block block = {view, shared};
    if (threadIdx.x < WIC_PLAN_DEPTH_MAX) {
        full_round[threadIdx.x] = 0;
    }
    wic_enter(block);
    const uint32_t warp = threadIdx.x / 32;
    wic_cursor at = {blockIdx.x / view.plan.pieces, blockIdx.x % view.plan.pieces};
    if (warp == 0) {
        activate<gate, pull>(block, at);
    } else if (warp == 1) {
        wic_publisher(block);
    } else if (warp == 2 && blockIdx.x == 0) {
        wic_monitor(view);
    } else if (warp >= WIC_SERVICE_WARPS) {
        const uint32_t thread = threadIdx.x - 32 * WIC_SERVICE_WARPS;
        wic_stage_position position(view);
        for (;; position.next(view.plan.depth), at.next(view.plan.pieces)) {
            pass<gate>(block, position, at.tile);
            const volatile wic_stage *stage = block.stage(position.stage);
            if (stage->tile == WIC_LEAVE) {
                break;
            }
            ndvi_lines(block.in(position.stage),
                       stage->out + static_cast<uint64_t>(stage->piece) * view.plan.out_piece,
                       stage->units, thread, 32 * view.plan.warps);
            wic_publish(block, position);
        }
        wic_barrier_arrive(block.done(position.stage)); // the Publisher gets WIC_LEAVE, too
    }
}

template <ablation_gate gate> const void *kernel_of(ablation_pull pull)
{
    return pull == PULL_BULK ? reinterpret_cast<const void *>(ndvi_ablated<gate, PULL_BULK>)
                             : reinterpret_cast<const void *>(ndvi_ablated<gate, PULL_LOADS>);
}
} // namespace

const void *ablation_kernel(ablation_gate gate, ablation_pull pull)
{
    return gate == GATE_NAMED      ? kernel_of<GATE_NAMED>(pull)
           : gate == GATE_MBARRIER ? kernel_of<GATE_MBARRIER>(pull)
           : gate == GATE_SHARED   ? kernel_of<GATE_SHARED>(pull)
                                   : kernel_of<GATE_BOARD>(pull);
}
