// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_REPLAY_CUH
#define WIC_BENCH_REPLAY_CUH
// The parts of --replay. The patterns are those of wic/patterns, linked into the program so that it
// stays one file.
#include "wic/bench/base/bench.cuh"
#include "wic/pattern/schedule.h"

#include <cerrno>

extern "C" {
extern const wic_pattern wic_pattern_alternating, wic_pattern_multiple, wic_pattern_probabilistic;
}

// The waits of both sides; the device's also look at the abort word.
namespace replay_wait
{
constexpr uint64_t limit_ns = 2000000000;
constexpr uint32_t look_interval = 1024; // looks between two at the clock and the abort word

// The host's side of a word that one side writes and the other waits for.
inline void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

inline int wait_above(const uint64_t *word, uint64_t value)
{
    const double limit = bench_seconds() + 1e-9 * limit_ns;
    for (uint32_t look = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) <= value; look++) {
        if (look % look_interval == 0 && bench_seconds() > limit) {
            return -ETIMEDOUT;
        }
    }
    return 0;
}
} // namespace replay_wait

bool replay_told();   // replay_told.cu: steps that the device decides on
bool replay_device(); // replay_device.cu: with the resident kernel of wic/device
#endif
