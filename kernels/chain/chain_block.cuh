// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_CHAIN_BLOCK_CUH
#define PB_CHAIN_BLOCK_CUH
// A whole chain on a part of a tile, by a group of threads of one block
// (kernels/thread_group.cuh): the loop of chain_cpu.c inside a kernel. A part is to the chain what
// a core is: what a plane covers is found from the part, margins grow from it and are clipped to
// the plane's grid, so neighbouring parts compute each other's borders again rather than wait for
// them, and the bits are those of the whole tile. What it takes is said by pb_chain_block_measure.
#include "kernels/chain/chain_block.h"
#include "kernels/chain/chain_device.h"
#include "kernels/chain/chain_stage.h"
#include "kernels/chain/frames.cuh"
#include "kernels/vm/program.cuh"
#include "kernels/focal/focal.cuh"
#include "kernels/resample/resample.cuh"
#include "kernels/resample/warp.cuh"

// What a kernel is compiled for: the code of planes is long, and that of grids costs registers.
enum class pb_chain_kind {
    POINTWISE, // one stage, the scene's grid
    PLANES,    // any number of stages, the scene's grid
    GRIDS,     // anything
};

namespace pb_device
{
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
    const pb_leaf_place *places;
    const pb_rect *bases;
};

inline __device__ const pb_rect &core_of(const part_sweep &sweep)
{
    return sweep.core;
}

// What a plane of the part covers.
template <class Sweep>
__device__ pb_rect rect_on(const pb_chain_device &, const Sweep &sweep, uint32_t, int32_t margin)
{
    return grown(sweep.core, margin, sweep.in.image_w, sweep.in.image_h);
}

template <class Sweep>
__device__ pb_rect rect_on(const pb_chain_device &chain, const on_grids<Sweep> &sweep,
                           uint32_t grid, int32_t margin)
{
    return rect_of_grid(chain, sweep.bases, grid, sweep.core, margin);
}

// One focal operation or resampling of a stage. The group must sync afterwards.
template <class Sweep, class Group>
__device__ void make_plane(const pb_chain_device &, const pb_stage_focal &s, const Sweep &sweep,
                           const pb_plane &from, const pb_plane &to, float *shared,
                           const Group &group)
{
    run_focal(s.focal, from, to, sweep.in.image_w, sweep.in.image_h, shared, group);
}

template <class Sweep, class Group>
__device__ void make_plane(const pb_chain_device &chain, const pb_stage_focal &s,
                           const on_grids<Sweep> &sweep, const pb_plane &from, const pb_plane &to,
                           float *shared, const Group &group)
{
    const pb_chain_grid &on = chain.grids[s.to_grid];
    if (to.rect.w == 0) {
        return;
    }
    if (s.is_warp) {
        if (s.has_heights) {
            const pb_plane heights = {sweep.planes + s.heights * sweep.plane_px,
                                      rect_on(chain, sweep, s.heights_grid, s.heights_margin)};
            run_warp<true>(s.warp, from, heights, to, group);
        } else {
            run_warp<false>(s.warp, from, pb_plane{}, to, group);
        }
    } else if (s.is_resample) {
        run_resample(s.resample, from, to, group);
    } else {
        run_focal(s.focal, from, to, on.w, on.h, shared, group);
    }
}

template <class Sweep, class Group>
__device__ void make_planes(const pb_chain_device &chain, const pb_device_stage &stage,
                            const Sweep &sweep, float *shared, const Group &group)
{
    for (uint32_t i = 0; i < stage.n_focals; i++) {
        const pb_stage_focal &s = chain.focals[stage.focals + i];
        const pb_plane from = {sweep.planes + s.from * sweep.plane_px,
                               rect_on(chain, sweep, s.from_grid, s.from_margin)};
        const pb_plane to = {sweep.planes + s.to * sweep.plane_px,
                             rect_on(chain, sweep, s.to_grid, s.to_margin)};
        make_plane(chain, s, sweep, from, to, shared, group);
        group.sync();
    }
}

template <pb_chain_kind KIND> struct sweep_type {
    using type = part_sweep;
};
template <> struct sweep_type<pb_chain_kind::GRIDS> {
    using type = on_grids<part_sweep>;
};
} // namespace pb_device

// Memory that a group of threads has for a part, as measured; NULL where it needs none.
struct pb_chain_block_memory {
    void *shared;
    float *scratch; // any memory
    size_t plane_px;
};

// Makes the pixels of `part`, which lies inside in.core, of all outputs. `out` is where the tile's
// output planes start: plane p at out + p * out_px, rows in.core.w apart, the first pixel being
// in.core's corner. The windows are any device-readable addresses, shared memory too; they hold
// what the chain needs for the part. `memory` as measured for PX and the thread group; it and out
// belong to nobody else. Every thread of the thread group calls it with the same arguments, which
// stay as they are until all have returned, and may call it again at once for the next part. A
// chain of one stage (no planes) never syncs. Nobody syncs after the last store.
template <int PX, pb_chain_kind KIND, class Group>
__device__ void pb_chain_block_run(const pb_chain_device &chain, const pb_tile_in &in,
                                   const pb_rect &part, float *out, size_t out_px,
                                   const pb_chain_block_memory &memory, const Group &group)
{
    constexpr bool has_planes = KIND != pb_chain_kind::POINTWISE;
    const pb_device::member me = {group.thread, group.threads};
    float *const corner = out + static_cast<size_t>(part.y - in.core.y) * in.core.w +
                          static_cast<size_t>(part.x - in.core.x);
    auto *const bases = reinterpret_cast<pb_rect *>(memory.scratch);
    float *const planes =
        KIND == pb_chain_kind::GRIDS ? memory.scratch + chain.bases_px : memory.scratch;
    typename pb_device::sweep_type<KIND>::type sweep{pb_device::part_sweep{in,
                                                                           part,
                                                                           chain.inputs,
                                                                           nullptr,
                                                                           0,
                                                                           {},
                                                                           nullptr,
                                                                           0,
                                                                           0,
                                                                           planes,
                                                                           memory.plane_px,
                                                                           chain.places,
                                                                           bases}};

    if (has_planes && chain.n_stages > 1) {
        group.sync(); // nobody reads the last part's planes any more
    }
    if (KIND == pb_chain_kind::GRIDS && chain.n_apart > 0) {
        if (group.thread == 0) {
            pb_device::find_bases(chain, part, bases);
        }
        group.sync();
    }
    for (uint32_t k = 0; k < chain.n_stages; k++) {
        const pb_device_stage &stage = chain.stages[k];
        const bool last = k + 1 == chain.n_stages;
        sweep.code = chain.code + stage.code;
        sweep.n_code = stage.n_code;
        sweep.rect = pb_device::rect_on(chain, sweep, stage.grid, stage.margin);
        sweep.out = last ? corner : planes;
        sweep.out_px = last ? out_px : memory.plane_px;
        sweep.out_row = last ? in.core.w : sweep.rect.w;
        if (stage.n_code) {
            pb_device::run_program<PX, 0>(sweep, me, 0, group.threads, memory.shared);
        }
        if constexpr (has_planes) {
            if (!last) {
                group.sync();
                pb_device::make_planes(chain, stage, sweep, static_cast<float *>(memory.shared),
                                       group);
            }
        }
    }
}
#endif
