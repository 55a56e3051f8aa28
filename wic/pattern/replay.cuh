// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_REPLAY_CUH
#define WIC_REPLAY_CUH
// The device's walks, in the order of wic/pattern/replay.h: along recorded steps
// (wic_schedule_record), or along steps that arrive one by one, as a pattern that is told what came
// of a step decides the next one on the host. By all threads of a warp or of a block, or by one:
// every thread that calls it goes the same way, so the functions may hold a barrier among them.
// Recorded steps lie in memory that the device can read and do not change.
#include "wic/pattern/pattern.h"

// What came of asking for a step or moving a chunk.
enum wic_walked {
    WIC_WALKED,
    WIC_ENDED, // there is none: the schedule has ended, or the chunk's open way
    WIC_LEFT,  // the walk must end
};

// bool move(const wic_step &step, uint64_t chunk), false from all callers alike: leave. Returns
// whether all steps were gone through.
template <class Move>
__device__ __forceinline__ bool wic_replay(const wic_step *steps, uint64_t count, Move move)
{
    for (uint64_t i = 0; i < count; i++) {
        const wic_step step = steps[i];
        for (uint64_t k = 0; k < step.count; k++) {
            if (!move(step, wic_step_chunk(&step, k))) {
                return false;
            }
        }
    }
    return true;
}

// Steps that arrive: `next` waits for step i, counted from 0, and fills it in; `move` moves a
// chunk; `tell` takes the outcome of a step with WIC_STEP_TOLD, of which so many chunks were moved,
// to the other parties, if this one sends it. Each gives the same to all callers.
//   wic_walked next(uint64_t i, wic_step *out_step)
//   wic_walked move(const wic_step &step, uint64_t chunk)
//   bool tell(uint64_t i, const wic_step &step, uint64_t count), false: leave
// Returns whether the walk came to the end of the schedule.
template <class Next, class Move, class Tell>
__device__ __forceinline__ bool wic_replay_told(Next next, Move move, Tell tell)
{
    wic_step step;
    for (uint64_t i = 0;; i++) {
        const wic_walked given = next(i, &step);
        if (given != WIC_WALKED) {
            return given == WIC_ENDED;
        }
        wic_walked moved = WIC_WALKED;
        uint64_t count = 0;
        for (uint64_t k = 0; k < step.count && moved == WIC_WALKED; k++) {
            moved = move(step, wic_step_chunk(&step, k));
            count += moved == WIC_WALKED;
        }
        if (moved == WIC_LEFT || ((step.flags & WIC_STEP_TOLD) && !tell(i, step, count))) {
            return false;
        }
    }
}
#endif
