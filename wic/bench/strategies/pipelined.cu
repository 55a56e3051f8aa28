// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The text-book persistent kernel: cuda::pipeline with two stages in shared memory, filled by
// cuda::memcpy_async of the whole block, which polls the mirror in device memory and computes one
// piece while the next one comes. Block 0 keeps the mirror and does nothing else.
#include "wic/bench/strategies/resident.cuh"

#include <cooperative_groups.h>
#include <cuda/pipeline>

namespace
{
constexpr uint32_t stages = 2;

enum look : uint32_t { LOOK_NONE, LOOK_HERE, LOOK_LEAVE };

// By one thread. Without `wait`, one poll.
__device__ look poll_mirror(const wic_view &view, uint64_t tile, bool wait)
{
    for (uint32_t polls = 0;; polls++) {
        const uint64_t word = wic_load_device(&view.ready_board[tile & view.ring_mask]);
        if (static_cast<uint32_t>(word >> 32) == static_cast<uint32_t>(tile + 1)) {
            return LOOK_HERE;
        }
        if (polls % 64 == 0) {
            const uint64_t end = wic_load_device(&view.state->end);
            if (tile >= end || end == WIC_LINK_ABORT) {
                return LOOK_LEAVE;
            }
        }
        if (!wait) {
            return LOOK_NONE;
        }
    }
}

// By the whole block. Whether that piece is to be fetched, or LOOK_LEAVE.
__device__ uint32_t ask(const wic_view &view, uint64_t piece, bool wait, uint32_t *answer)
{
    if (threadIdx.x == 0) {
        *answer = poll_mirror(view, piece / view.plan.pieces, wait);
    }
    __syncthreads();
    const uint32_t now = *answer;
    __syncthreads();
    return now;
}

__device__ const unsigned char *input_of(const wic_view &view, uint64_t piece)
{
    return view.in + piece / view.plan.pieces % view.in_slots * view.in_stride +
           piece % view.plan.pieces * view.plan.in_piece;
}

__global__ void __launch_bounds__(1024) ndvi_pipeline(const __grid_constant__ wic_view view)
{
    extern __shared__ __align__(128) unsigned char buffers[];
#pragma nv_diag_suppress static_var_with_dynamic_init // make_pipeline initialises it
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ uint32_t seen; // an enum look
    const wic_transfer_plan &plan = view.plan;
    bench_enter(view);
    if (blockIdx.x == 0) {
        if (threadIdx.x < 32) {
            wic_monitor(view);
        }
        return;
    }
    const auto block = cooperative_groups::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    const uint64_t step = gridDim.x - 1;
    uint64_t fetched = blockIdx.x - 1, computed = fetched; // pieces of the run
    for (bool leave = false; !leave || computed < fetched;) {
        while (!leave && fetched < computed + stages * step) {
            const uint32_t now = ask(view, fetched, fetched == computed, &seen);
            leave = now == LOOK_LEAVE;
            if (now != LOOK_HERE) {
                break;
            }
            pipe.producer_acquire();
            cuda::memcpy_async(block, buffers + fetched / step % stages * plan.in_piece,
                               input_of(view, fetched), cuda::aligned_size_t<16>(plan.in_piece),
                               pipe);
            pipe.producer_commit();
            fetched += step;
        }
        if (computed == fetched) {
            continue;
        }
        pipe.consumer_wait();
        const uint64_t tile = computed / plan.pieces;
        ndvi_lines(buffers + computed / step % stages * plan.in_piece,
                   bench_results_of(view, tile, static_cast<uint32_t>(computed % plan.pieces)),
                   plan.piece_units, threadIdx.x, blockDim.x);
        __threadfence_system();
        pipe.consumer_release();
        block.sync();
        if (threadIdx.x == 0) {
            bench_piece_done(view, tile, plan.pieces);
        }
        computed += step;
    }
}
} // namespace

const void *pipeline_kernel()
{
    return reinterpret_cast<const void *>(ndvi_pipeline);
}
