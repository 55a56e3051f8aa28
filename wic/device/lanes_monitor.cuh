// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_LANES_MONITOR_CUH
#define WIC_LANES_MONITOR_CUH
// A block of a launch (wic/device/lanes.cuh): where the views of its lanes are, and the warps that
// look for what the host says of them.
#include "wic/device/launch.h"
#include "wic/device/wic_device.cuh"

constexpr uint32_t wic_lane_words = 4; // that are polled of each
static_assert(wic_lane_words * WIC_LANES_MAX == 32, "a warp polls the words of all lanes");
static_assert(sizeof(wic_view) % sizeof(uint64_t) == 0, "a view is copied by words");

// A block of the launch; its own view is what all lanes share.
struct wic_lanes_block {
    const wic_lanes &lanes;
    wic_block base;

    __device__ wic_view *view(uint32_t lane) const
    {
        return reinterpret_cast<wic_view *>(base.memory + lanes.views_at) + lane;
    }
    __device__ wic_block of(uint32_t lane) const
    {
        return {*view(lane), base.memory};
    }
};

// The view of a lane that has just been opened, to shared memory. Called by a warp, one thread of
// which has acquired the lane's open word.
__device__ __forceinline__ void wic_copy_view(const wic_lanes &lanes, uint32_t lane, wic_view *to)
{
    __syncwarp();
    const volatile uint64_t *from = reinterpret_cast<const uint64_t *>(&lanes.views[lane]);
    for (uint32_t i = wic_lane(); i < sizeof(wic_view) / sizeof(uint64_t); i += 32) {
        reinterpret_cast<uint64_t *>(to)[i] = from[i];
    }
    __syncwarp();
}

// --- Monitor ---

// Of the blocks and the Monitor that are done with a lane, the last one tells the host.
__device__ __forceinline__ void wic_leave_lane(const wic_view &view)
{
    if (wic_lane() == 0 && wic_add_device(&view.state->left, 1) == gridDim.x) {
        wic_store_system(view.left, view.opening);
    }
    __syncwarp();
}

__device__ inline void wic_monitor_lane(const wic_lanes_block &block, uint32_t lane)
{
    const wic_lanes &lanes = block.lanes;
    wic_view *const view = block.view(WIC_LANES_MAX); // the Monitor's own
    const uint64_t *word = wic_lane() == 0 ? &lanes.open[lane] : &lanes.base.state->end;
    uint64_t opened = 0;
    for (uint32_t idle = 0;; idle++) {
        const uint64_t value = wic_peek_device(word);
        if (__shfl_sync(~0u, value, 1) != WIC_LINK_OPEN) {
            return;
        }
        const uint64_t opening = __shfl_sync(~0u, value, 0);
        if (opening == opened) {
            wic_nap(idle);
            continue;
        }
        opened = opening;
        if (wic_lane() == 0) {
            (void)wic_load_system(word);
        }
        wic_copy_view(lanes, lane, view);
        wic_monitor(*view);
        wic_leave_lane(*view);
        idle = 0;
    }
}

// Ends the launch for all blocks, when the host says so or its heartbeat has stopped.
__device__ inline void wic_keeper(const wic_lanes &lanes)
{
    const wic_view &base = lanes.base;
    uint64_t beat = 0, beat_at = wic_warp_now();
    for (;;) {
        const wic_word_pair control = wic_load_pair_system(&base.control->end);
        const uint64_t now = wic_warp_now();
        const uint64_t new_beat = __shfl_sync(~0u, control.second, 0);
        const bool over = __shfl_sync(~0u, control.first, 0) != WIC_LINK_OPEN;
        if (new_beat != beat) {
            beat = new_beat;
            beat_at = now;
        }
        if (over || now - beat_at > 2 * base.beat_ns) {
            if (wic_lane() == 0) {
                wic_store_device(&base.state->end, WIC_LINK_ABORT);
            }
            return;
        }
        __nanosleep(WIC_LONG_NAP_NS);
    }
}
#endif
