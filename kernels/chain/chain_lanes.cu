// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The resident kernels of several chains (wic/device/lanes.cuh). A piece comes with the argument of
// its lane, so a block may work for another chain with each piece; all its threads take the same
// branch. Chains of parts have kernels of their own: in one for all of them the long code of focal
// operations ran slower by a sixth (H200). So have those that sum up (chain_sums.cuh), which keep
// numbers in their blocks from piece to piece.
#include "kernels/chain/chain_lanes.h"
#include "kernels/chain/chain_resident.cuh"
#include "wic/device/lanes.cuh"

using namespace pb_device;

namespace
{
__global__ void __launch_bounds__(threads_max(true), 1)
    run_lines(const __grid_constant__ wic_lanes lanes)
{
    uint32_t turn = 0;
    wic_resident_lanes(lanes, [&](const wic_piece &piece, const void *argument) {
        const task &task = *static_cast<const struct task *>(argument);
        if (task.shape.px == 4) {
            run_piece<4, true, pb_chain_kind::POINTWISE>(task, piece, turn++);
        } else {
            run_piece<1, true, pb_chain_kind::POINTWISE>(task, piece, turn++);
        }
    });
}

const pb_lane_kernel kernels[PB_CHAIN_LANE_COUNT] = {
    {reinterpret_cast<const void *>(run_lines), PB_RESIDENT_LINE_WARPS, 1},
};
} // namespace

enum pb_chain_lane pb_chain_lanes_of(const struct pb_chain_resident_shape *shape, uint32_t warps)
{
    const pb_chain_lane which =
        shape->by_line && shape->sums.n == 0 ? PB_CHAIN_LANE_LINES : PB_CHAIN_LANE_COUNT;
    return which < PB_CHAIN_LANE_COUNT && kernels[which].warps == warps ? which
                                                                        : PB_CHAIN_LANE_COUNT;
}

const struct pb_lane_kernel *pb_chain_lanes_kernel(enum pb_chain_lane which)
{
    return &kernels[which];
}
