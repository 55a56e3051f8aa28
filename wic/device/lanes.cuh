// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_LANES_CUH
#define WIC_LANES_CUH
// The device side of a launch (wic/device/launch.h): the warps of wic_device.cuh for several links.
//
//   __global__ void kernel(const __grid_constant__ wic_lanes lanes)
//   {
//       wic_resident_lanes(lanes, [&](const wic_piece &piece, const void *argument) { ... });
//   }
//
// What differs from a link with a kernel of its own:
//
//   Activator  thread t of the warp has word t % 4 of lane t / 4: of an open lane the ready board's
//              word for its next tile, its end, the credits and the beat of its Monitor, all polled
//              with one load; of another one its open word and the end of the launch.
//   view       of a lane, in shared memory. The Activator copies it there when the lane is opened;
//              the other warps get to it by the number in the stage.
//   Monitor    warp 2 of block l: waits until lane l is opened, is its Monitor until the lane's
//              end, and waits again. That of block WIC_LANES_MAX is the Keeper, which asks the host
//              whether the kernel shall leave.
//   leaving    a stage marked WIC_LANE_LEAVE says that the block has no more pieces of that lane.
//              The Publishers and the Monitor count up, the last of them tells the host.
//
// So a view in shared memory is overwritten only when the lane is opened again, which the host does
// after every block has passed its mark.
#include "wic/device/lanes_activator.cuh"
#include "wic/device/lanes_monitor.cuh"

// --- Publisher ---

// What is done of the stages that a Publisher has taken together: thread n of the warp holds the
// n-th piece, of any lane.
struct wic_done {
    uint64_t tile;
    uint32_t pieces, lane;
};

// Takes the results of the stages that are done one after the other, and gives the stages back.
// Returns how many; *mark: of a stage that it did not take, as it is none of a piece.
__device__ inline uint32_t wic_take_done(const wic_lanes_block &block, wic_stage_position *position,
                                         uint32_t *taken, wic_done *own, uint64_t *mark)
{
    const wic_block &base = block.base;
    const uint32_t depth = base.view.plan.depth;
    uint32_t group = 0;
    bool bulk = false;
    do {
        wic_barrier_park(base.done(position->stage), position->round);
        const volatile wic_stage *stage = base.stage(position->stage);
        *mark = stage->tile;
        if (*mark >= WIC_LANE_LEAVE) {
            break;
        }
        const wic_transfer_plan &plan = block.view(stage->lane)->plan;
        if (wic_lane() == group) {
            *own = {*mark, stage->pieces, stage->lane};
        }
        if (plan.results == WIC_PUSH_BULK) {
            bulk = true;
            wic_push(stage->out + static_cast<uint64_t>(stage->piece) * plan.out_piece,
                     block.of(stage->lane).out(position->stage),
                     (stage->units * plan.out_unit + 15) / 16 * 16);
            wic_push_read();
        }
        wic_barrier_arrive(base.empty(position->stage));
        position->next(depth);
        group++;
        ++*taken;
    } while (group < depth && wic_next_is_done(base, *taken));
    if (bulk) {
        wic_push_done();
    }
    return group;
}

// As wic_publisher.
__device__ inline void wic_publisher_lanes(const wic_lanes_block &block)
{
    const wic_block &base = block.base;
    uint32_t taken = 0;
    wic_stage_position position(base.view);
    for (uint64_t mark = 0; mark != WIC_LEAVE;) {
        wic_done own = {WIC_LEAVE, 0, 0};
        const uint32_t group = wic_take_done(block, &position, &taken, &own, &mark);
        if (wic_lane() < group) {
            const wic_view &view = *block.view(own.lane);
            if (wic_completes_tile(view, own.tile, own.pieces)) {
                wic_store_system(&view.done[own.tile & view.ring_mask], own.tile + 1);
            }
        }
        __syncwarp();
        if (mark == WIC_LANE_LEAVE) {
            wic_leave_lane(*block.view(base.stage(position.stage)->lane));
            wic_barrier_arrive(base.empty(position.stage));
            position.next(base.view.plan.depth);
            taken++;
        }
    }
}

// --- the kernel ---

// work(const wic_piece &, const void *argument) is called by all threads of the working warps, for
// each piece, with the argument of its lane.
template <class Work>
__device__ __forceinline__ void wic_resident_lanes(const wic_lanes &lanes, Work work)
{
    extern __shared__ __align__(128) unsigned char wic_shared[];
    const wic_lanes_block block = {lanes, {lanes.base, wic_shared}};
    const wic_block &base = block.base;
    wic_enter(base);
    const uint32_t warp = threadIdx.x / 32;
    if (warp == 0) {
        wic_activate_lanes(block);
    } else if (warp == 1) {
        wic_publisher_lanes(block);
    } else if (warp == 2) {
        if (blockIdx.x < WIC_LANES_MAX) {
            wic_monitor_lane(block, blockIdx.x);
        } else if (blockIdx.x == WIC_LANES_MAX) {
            wic_keeper(lanes);
        }
    } else {
        wic_piece piece;
        piece.thread = threadIdx.x - 32 * WIC_SERVICE_WARPS;
        piece.threads = 32 * lanes.base.plan.warps;
        piece.work = base.in(lanes.base.plan.depth);
        wic_stage_position position(base.view);
        for (;; position.next(lanes.base.plan.depth)) {
            wic_barrier_park(base.full(position.stage), position.round);
            const volatile wic_stage *stage = base.stage(position.stage);
            if (stage->tile == WIC_LEAVE) {
                break;
            }
            if (stage->tile != WIC_LANE_LEAVE) {
                const uint32_t lane = stage->lane;
                wic_describe(block.of(lane), position, &piece);
                work(piece, lanes.arguments + static_cast<size_t>(lane) * lanes.argument_bytes);
            }
            wic_publish(base, position);
        }
        wic_barrier_arrive(base.done(position.stage)); // the Publisher gets WIC_LEAVE, too
    }
}
#endif
