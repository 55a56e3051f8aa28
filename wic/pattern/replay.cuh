// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_REPLAY_CUH
#define WIC_REPLAY_CUH
// The device's walk along recorded steps (wic_schedule_record), in the order of
// wic/pattern/replay.h. By all threads of a warp or of a block, or by one: every thread that calls
// it goes the same way, so `move` may hold a barrier among them. The steps lie in memory that the
// device can read and do not change.
#include "wic/pattern/pattern.h"

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
#endif
