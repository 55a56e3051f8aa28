// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The stages and barriers of a block (wic/device/stage.cuh) with mistakes on demand, for
// compute-sanitizer's racecheck: built with -DWIC_RACECHECK it must report nothing without one and
// report a hazard with each. The pieces are made by the block itself: no host, no bulk copies.
//
//   wic-gates-racecheck MISTAKE      exits 1 when the results of mistake 0 are wrong
#include "wic/device/wic_device.cuh"

#include <cstdio>
#include <cstdlib>

namespace
{
constexpr uint32_t words = 64, pieces = 24;

enum mistake {
    none,
    fills_before_empty,
    reads_before_full,
    writes_after_done,
    reads_after_empty,
    mistakes
};

__device__ uint32_t *words_of(unsigned char *buffer)
{
    return reinterpret_cast<uint32_t *>(buffer);
}

__device__ void fill(const wic_block &block, const wic_stage_position &at, uint32_t piece)
{
    volatile uint32_t *in = words_of(block.in(at.stage));
    in[wic_lane()] = piece;
    in[wic_lane() + 32] = piece;
    wic_fill_stage(block, at, {piece, nullptr, nullptr, piece, 1, words});
}

__device__ void activator(const wic_block &block, mistake wrong)
{
    wic_stage_position at(block.view);
    for (uint32_t piece = 0; piece < pieces; piece++, at.next(block.view.plan.depth)) {
        if (wrong == fills_before_empty) {
            fill(block, at, piece);
        }
        if (at.used) {
            wic_barrier_park(block.empty(at.stage), at.round - 1);
        }
        if (wrong != fills_before_empty) {
            fill(block, at, piece);
        }
        wic_barrier_arrive(block.full(at.stage));
    }
}

__device__ void worker(const wic_block &block, mistake wrong, uint32_t *late)
{
    const uint32_t i = threadIdx.x - 32 * WIC_SERVICE_WARPS;
    wic_stage_position at(block.view);
    for (uint32_t piece = 0; piece < pieces; piece++, at.next(block.view.plan.depth)) {
        const volatile uint32_t *in = words_of(block.in(at.stage));
        volatile uint32_t *out = words_of(block.out(at.stage));
        const uint32_t early = wrong == reads_before_full ? in[i * 7 % words] : 0;
        wic_barrier_park(block.full(at.stage), at.round);
        const uint32_t value = wrong == reads_before_full ? early : in[i * 7 % words];
        if (wrong != writes_after_done) {
            out[i] = value;
        }
        wic_publish(block, at);
        if (wrong == writes_after_done) {
            out[i] = value;
        }
        if (wrong == reads_after_empty) {
            __nanosleep(1000000); // the activator fills the buffer again
            if (in[i * 7 % words] == UINT32_MAX) {
                *late = 1;
            }
        }
    }
}

__device__ void publisher(const wic_block &block, uint32_t *sum)
{
    wic_stage_position at(block.view);
    for (uint32_t piece = 0; piece < pieces; piece++, at.next(block.view.plan.depth)) {
        wic_barrier_park(block.done(at.stage), at.round);
        const volatile uint32_t *out = words_of(block.out(at.stage));
        const uint32_t found =
            out[wic_lane()] + out[wic_lane() + 32] + block.stage(at.stage)->piece;
        wic_barrier_arrive(block.empty(at.stage));
        atomicAdd(sum, found);
    }
}

__global__ void gates(const __grid_constant__ wic_view view, mistake wrong, uint32_t *results)
{
    extern __shared__ __align__(128) unsigned char memory[];
    const wic_block block = {view, memory};
    if (threadIdx.x == 0) {
        for (uint32_t stage = 0; stage < view.plan.depth; stage++) {
            wic_barrier_init(block.full(stage), 1);
            wic_barrier_init(block.done(stage), view.plan.warps);
            wic_barrier_init(block.empty(stage), view.plan.warps + 1);
        }
    }
    __syncthreads();
    const uint32_t warp = threadIdx.x / 32;
    if (warp == 0) {
        activator(block, wrong);
    } else if (warp == 1) {
        publisher(block, results);
    } else if (warp >= WIC_SERVICE_WARPS) {
        worker(block, wrong, results + 1);
    }
}
} // namespace

int main(int argc, char **argv)
{
    const int wrong = argc == 2 ? atoi(argv[1]) : -1;
    if (wrong < none || wrong >= mistakes) {
        fprintf(stderr, "usage: wic-gates-racecheck MISTAKE     0: none, up to %d\n", mistakes - 1);
        return 2;
    }
    wic_view view = {};
    view.plan.results = WIC_PUSH_BULK;
    view.plan.depth = 2;
    view.plan.warps = words / 32;
    view.plan.in_piece = view.plan.out_piece = words * sizeof(uint32_t);
    view.stage_bytes = view.plan.in_piece + view.plan.out_piece;
    uint32_t *results, host[2] = {0, 0};
    cudaError_t error = cudaMalloc(&results, sizeof host);
    error = error ? error : cudaMemset(results, 0, sizeof host);
    gates<<<1, 32 * (WIC_SERVICE_WARPS + view.plan.warps),
            wic_transfer_plan_shared_bytes(&view.plan)>>>(view, static_cast<mistake>(wrong),
                                                          results);
    error = error ? error : cudaMemcpy(host, results, sizeof host, cudaMemcpyDeviceToHost);
    const uint32_t wanted = pieces * (pieces - 1) / 2 * (words + 32);
    printf("mistake %d: %s, sum %u, %u without a mistake\n", wrong, cudaGetErrorName(error),
           host[0], wanted);
    return error || (wrong == none && host[0] != wanted);
}
