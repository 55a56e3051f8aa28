// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_CHAIN_BLOCK_CUH
#define PB_CHAIN_BLOCK_CUH
// A whole chain on a part of a tile, by a group of threads of one block
// (kernels/thread_group.cuh): the loop of chain_cpu.c inside a kernel. A part is to the chain what
// a core is: margins grow from the part and are clipped to the image, so neighbouring parts compute
// each other's borders again rather than wait for them, and the bits are those of the whole tile.
// What it takes is said by pb_chain_block_measure.
#include "kernels/chain/chain_block.h"
#include "kernels/chain/chain_device.h"
#include "kernels/chain/chain_stage.h"
#include "kernels/vm/program.cuh"
#include "kernels/focal/focal.cuh"

namespace pb_device
{
// Floats from plane to plane in the scratch of a part; at most what pb_chain_measure says.
inline __device__ size_t plane_px(const pb_rect &part, int32_t halo)
{
    const size_t px =
        static_cast<size_t>(part.w + 2 * halo) * static_cast<size_t>(part.h + 2 * halo);
    return (px + 15) / 16 * 16;
}

// The sweep over one part. What the caller keeps in memory stays there: a copy would take a third
// of a thread's registers.
struct part_sweep {
    const pb_tile_in &in;
    pb_rect core; // the part
    const pb_program_input *inputs;
    const pb_instr *code;
    uint32_t n_code;
    pb_rect rect;
    float *out;
    size_t out_px;
    int32_t out_row;
    float *planes;
    size_t plane_px;
};

inline __device__ const pb_rect &core_of(const part_sweep &sweep)
{
    return sweep.core;
}

inline __device__ pb_rect grown(const part_sweep &sweep, int32_t margin)
{
    return grown(sweep.core, margin, sweep.in.image_w, sweep.in.image_h);
}

template <class Group>
__device__ void run_focals(const pb_chain_device &chain, const pb_device_stage &stage,
                           const part_sweep &sweep, float *shared, const Group &group)
{
    for (uint32_t i = 0; i < stage.n_focals; i++) {
        const pb_stage_focal &s = chain.focals[stage.focals + i];
        const pb_plane from = {sweep.planes + s.from * sweep.plane_px, grown(sweep, s.from_margin)};
        const pb_plane to = {sweep.planes + s.to * sweep.plane_px, grown(sweep, s.to_margin)};
        run_focal(s.focal, from, to, sweep.in.image_w, sweep.in.image_h, shared, group);
        group.sync();
    }
}
} // namespace pb_device

// Makes the pixels of `part`, which lies inside in.core, of all outputs. `out` is where the tile's
// output planes start: plane p at out + p * out_px, rows in.core.w apart, the first pixel being
// in.core's corner. in.window[0] is any device-readable addresses, shared memory too;
// its rect holds part grown by the chain's halo, clipped to the image. shared and scratch (any
// memory; NULL when its size is 0) as measured for PX and the thread group; out and scratch belong
// to nobody else. Every thread of the thread group calls it with the same arguments, which stay as
// they are until all have returned, and may call it again at once for the next part. A chain of one
// stage (no planes) never syncs. Nobody syncs after the last store. FOCALS: the chain may have
// some; their code is long.
template <int PX, bool FOCALS, class Group>
__device__ void pb_chain_block_run(const pb_chain_device &chain, const pb_tile_in &in,
                                   const pb_rect &part, float *out, size_t out_px, void *shared,
                                   float *scratch, const Group &group)
{
    const pb_device::member me = {group.thread, group.threads};
    const size_t scratch_px = pb_device::plane_px(part, chain.halo);
    float *const corner = out + static_cast<size_t>(part.y - in.core.y) * in.core.w +
                          static_cast<size_t>(part.x - in.core.x);
    pb_device::part_sweep sweep = {in, part, chain.inputs, nullptr,   0, {}, nullptr,
                                   0,  0,    scratch,      scratch_px};

    if (FOCALS && chain.n_stages > 1) {
        group.sync(); // nobody reads the last part's planes any more
    }
    for (uint32_t k = 0; k < chain.n_stages; k++) {
        const pb_device_stage &stage = chain.stages[k];
        const bool last = k + 1 == chain.n_stages;
        sweep.code = chain.code + stage.code;
        sweep.n_code = stage.n_code;
        sweep.rect = pb_device::grown(sweep, stage.margin);
        sweep.out = last ? corner : scratch;
        sweep.out_px = last ? out_px : scratch_px;
        sweep.out_row = last ? in.core.w : sweep.rect.w;
        if (stage.n_code) {
            pb_device::run_program<PX>(sweep, me, 0, group.threads * PX, shared);
        }
        if constexpr (FOCALS) {
            if (!last) {
                group.sync();
                pb_device::run_focals(chain, stage, sweep, static_cast<float *>(shared), group);
            }
        }
    }
}
#endif
