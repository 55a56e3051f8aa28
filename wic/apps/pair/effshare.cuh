// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_EFFSHARE_CUH
#define WIC_APP_PAIR_EFFSHARE_CUH
// effshare: a kernel makes chunks in its own memory and counts the blocks that are done with each;
// an agent sees that a chunk is ready and pushes it with all that follow by a copy engine, then
// their words. An application-level copy of the hardware of EffShare and PROACT: the agent is the
// host's thread that waits for the round.
#include "wic/apps/pair/pair.cuh"

struct pair_effshare {
    template <class Write> static __device__ void make(const pair_sending &sending, Write write)
    {
        write(sending.copy());
    }
};

// The agent of one lane; all its words start as 0.
class pair_agent
{
  public:
    // Pushes the chunks that are ready and side by side: push(at, count) brings the chunks in
    // `count` places from `at` on, then their words. False: no chunk is ready.
    template <class Push> bool serve(const pair_lane &lane, Push push)
    {
        const uint32_t at = next_ & lane.mask;
        uint32_t count = 0;
        while (at + count <= lane.mask && is_ready(lane, next_ + count)) {
            count++;
        }
        if (count == 0) {
            return false;
        }
        push(at, count);
        next_ += count;
        return true;
    }

  private:
    static bool is_ready(const pair_lane &lane, uint32_t number)
    {
        const uint64_t word = __atomic_load_n(&lane.ready[number & lane.mask], __ATOMIC_ACQUIRE);
        return word >> 32 == number + 1;
    }

    uint32_t next_ = 0; // number of chunks that were pushed
};
#endif
