// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_STAGE_CUH
#define WIC_STAGE_CUH
// The stages of a block: the buffers in its shared memory through which pieces pass, as a ring, and
// the barriers between the warps that fill, use and empty them.
#include "wic/device/barrier.cuh"
#include "wic/device/link.h"

#define WIC_BARRIER_BYTES 256 // of shared memory, in front of what the stages hold
#define WIC_USER_OFFSET   512 // after that
#define WIC_LEAVE         UINT64_MAX
#define WIC_LANE_LEAVE    (UINT64_MAX - 1)
#define WIC_DOORBELL_LANES                                                                         \
    30u // of the Monitor read the doorbell, two words each; the other two the control
#define WIC_ALERT_LOOKS  512u  // polls without a change, some 300 us: then it sleeps between polls
#define WIC_DROWSY_LOOKS 8192u // some 10 ms: then it sleeps longer
#define WIC_NAP_NS       1000u
#define WIC_LONG_NAP_NS  8000u

// Sleeps between two polls of an Activator or the Monitor. The longer nothing arrives, the less it
// takes of the other warps' issue slots; the sleep is under 1 % of the time waited so far.
__device__ __forceinline__ void wic_nap(uint32_t idle)
{
    if (idle > WIC_ALERT_LOOKS) {
        __nanosleep(idle > WIC_DROWSY_LOOKS ? WIC_LONG_NAP_NS : WIC_NAP_NS);
    }
}

// The description of a stage's content; in shared memory.
struct wic_stage {
    uint64_t tile;           // or WIC_LEAVE, WIC_LANE_LEAVE
    const unsigned char *in; // whole tile; for transports that do not pull
    unsigned char *out;      // where the results of the tile go
    uint32_t piece, pieces;
    uint32_t units;
    uint32_t lane = 0; // of a launch
};

// The argument of the work. All working warps of the block get the same piece.
struct wic_piece {
    const void *in;   // pulled: units * in_unit bytes in shared memory, 16-byte aligned; else the
                      // tile where it lies
    void *out;        // for the results of this piece, one after the other; not if out_unit is 0
    void *tile_out;   // the tile's output slot; WIC_PUSH_STORES only
    const void *user; // user_bytes of the tile, in shared memory, 16-byte aligned
    void *work;       // work_bytes of shared memory, 16-byte aligned, kept from piece to piece
    uint64_t tile;
    uint32_t piece, first; // of the tile; its first unit
    uint32_t units;
    uint32_t thread, threads; // of the working threads

    // A barrier of the working threads; each calls it as often as the others. In place of
    // __syncthreads(), which waits for the service warps as well and hangs the device.
    __device__ __forceinline__ void sync() const
    {
        __syncwarp(); // bar is undefined for a warp that has not converged
        asm volatile("bar.sync 0, %0;" ::"r"(threads) : "memory");
    }
};

struct wic_block {
    const wic_view &view;
    unsigned char *memory; // of the block, shared

    __device__ wic_barrier barrier(uint32_t kind, uint32_t stage) const
    {
        const uint32_t warps = view.plan.warps + (kind == 2 ? 2 : 1); // that arrive or wait
        uint64_t *mbarrier =
            reinterpret_cast<uint64_t *>(memory) + WIC_PLAN_DEPTH_MAX + 3 * stage + kind;
        return {1 + 3 * stage + kind, 32 * warps, mbarrier};
    }
    __device__ wic_barrier full(uint32_t stage) const
    {
        return barrier(0, stage);
    }
    __device__ wic_barrier done(uint32_t stage) const
    {
        return barrier(1, stage);
    }
    __device__ wic_barrier empty(uint32_t stage) const
    {
        return barrier(2, stage);
    }
    __device__ uint64_t *bytes(uint32_t stage) const
    {
        return reinterpret_cast<uint64_t *>(memory) + stage;
    }
    __device__ uint32_t *
    passed() const // arrivals of working warps with their results, of all pieces
    {
        return reinterpret_cast<uint32_t *>(memory + WIC_BARRIER_BYTES) - 1;
    }
    __device__ volatile wic_stage *stage(uint32_t stage) const
    {
        return reinterpret_cast<wic_stage *>(memory + WIC_BARRIER_BYTES) + stage;
    }
    __device__ unsigned char *user(uint32_t stage) const
    {
        return memory + WIC_USER_OFFSET + stage * WIC_PLAN_USER_MAX;
    }
    // The buffers of a stage; those of stage `depth` are the work's own.
    __device__ unsigned char *in(uint32_t stage) const
    {
        return memory + WIC_STAGES_OFFSET + stage * view.stage_bytes;
    }
    __device__ unsigned char *out(uint32_t stage) const
    {
        return in(stage) + view.plan.in_piece;
    }
};

static_assert(WIC_BARRIER_BYTES + WIC_PLAN_DEPTH_MAX * sizeof(wic_stage) <= WIC_USER_OFFSET &&
                  WIC_USER_OFFSET + WIC_PLAN_DEPTH_MAX * WIC_PLAN_USER_MAX <= WIC_STAGES_OFFSET &&
                  WIC_PLAN_DEPTH_MAX * 4 * sizeof(uint64_t) + sizeof(uint32_t) <= WIC_BARRIER_BYTES,
              "the members of the stages fit in front of the buffers");

// Iterates over the stages. `round` counts the rounds and wraps after 2^32; its last bit is the
// phase of the stage's barriers. `used`: the stage was filled before.
struct wic_stage_position {
    uint32_t stage, round;
    bool used;

    __device__ explicit wic_stage_position(const wic_view &view)
        : stage(0), round(view.first_round), used(false)
    {
    }

    __device__ void next(uint32_t depth)
    {
        if (++stage == depth) {
            stage = 0;
            round++;
            used = true;
        }
    }
};
#endif
