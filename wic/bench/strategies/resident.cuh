// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_RESIDENT_CUH
#define WIC_BENCH_RESIDENT_CUH
// What the resident kernels of rivals share: they get their chunks through a link as wic does.
#include "wic/bench/base/ndvi.cuh"
#include "wic/device/wic_device.cuh"

// The last block to come tells the host that all are resident.
__device__ inline void bench_enter(const wic_view &view)
{
    if (threadIdx.x == 0 && wic_add_device(&view.state->started, 1) == gridDim.x - 1) {
        wic_store_system(view.started, 1);
    }
    __syncthreads();
}

__device__ inline unsigned char *bench_results_of(const wic_view &view, uint64_t tile,
                                                  uint32_t piece)
{
    return view.out + (view.out_first + tile) % view.out_slots * view.out_stride +
           static_cast<uint64_t>(piece) * view.plan.out_piece;
}

// By one thread of a block whose results are all stored.
__device__ inline void bench_piece_done(const wic_view &view, uint64_t tile, uint32_t pieces)
{
    uint32_t *arrived = &view.arrived[tile & view.ring_mask];
    if (pieces == 1 || wic_add_device(arrived, 1) == pieces - 1) {
        *arrived = 0;
        wic_store_system(&view.done[tile & view.ring_mask], tile + 1);
    }
}
#endif
