// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_PERCENTILES_CUH
#define PB_PERCENTILES_CUH
// Values are counted in the state itself, by atomic additions. Neighbours often have the same
// count: a table in shared memory holds, for each of its places, the first of the counts that share
// it, and what came for that one; the others go to the state at once.
#include "kernels/reduce/percentiles_state.h"
#include "kernels/reduce/statistics_device.h"
#include "kernels/thread_group.cuh"

namespace pb_device
{
constexpr uint32_t PERCENTILES_THREADS = 256, HELD_COUNTS = 2048, NO_COUNT = 0xffffffff;

struct percentiles_arena {
    uint32_t count_of[HELD_COUNTS], n[HELD_COUNTS];
    uint32_t values;
};

inline __device__ void add_to_state(pb_percentiles *state, uint32_t count, uint32_t n)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(&state->counts[count]),
              static_cast<unsigned long long>(n));
}

inline __device__ void count_value(percentiles_arena &arena, pb_percentiles *state, uint32_t count)
{
    const uint32_t place = count % HELD_COUNTS;
    const uint32_t held = atomicCAS(&arena.count_of[place], NO_COUNT, count);
    if (held == NO_COUNT || held == count) {
        atomicAdd(&arena.n[place], 1u);
    } else {
        add_to_state(state, count, 1);
    }
}

inline __device__ void add_in_second(percentiles_arena &arena, pb_percentiles *state, float value)
{
    const uint32_t key = pb_percentiles_key(value);
    const uint32_t role = pb_percentiles_roles(state)[key >> PB_PERCENTILES_LOW_BITS];
    if (role == PB_PERCENTILES_LEFT_OUT) {
        return;
    }
    const uint32_t i = role - PB_PERCENTILES_COUNTED;
    if (i < PB_PERCENTILES_MAX) {
        count_value(arena, state, i * PB_PERCENTILES_BUCKETS + key % PB_PERCENTILES_BUCKETS);
    } else if (key < state->least[i - PB_PERCENTILES_MAX]) {
        atomicMin(&state->least[i - PB_PERCENTILES_MAX], key);
    }
}
} // namespace pb_device

// The share `index` of `shares` of a plane's rows. Every thread of the group calls it; a barrier
// follows before the arena is used again.
template <class Group>
__device__ void pb_percentiles_rows(const pb_statistics_plane &plane, uint32_t index,
                                    uint32_t shares, pb_device::percentiles_arena &arena,
                                    pb_percentiles *state, const Group &group)
{
    using namespace pb_device;
    uint32_t values = 0;
    for (uint32_t i = group.thread; i < HELD_COUNTS; i += group.threads) {
        arena.count_of[i] = NO_COUNT;
        arena.n[i] = 0;
    }
    if (group.thread == 0) {
        arena.values = 0;
    }
    group.sync();
    const auto h = plane.data == nullptr ? 0 : static_cast<uint32_t>(plane.h);
    for (uint32_t y = index; y < h; y += shares) {
        const float *const row = plane.data + static_cast<size_t>(y) * plane.row_px;
        for (uint32_t x = group.thread; x < static_cast<uint32_t>(plane.w); x += group.threads) {
            const float value = row[x];
            if (!(fabsf(value) <= FLT_MAX)) {
                continue;
            }
            values++;
            if (state->second) {
                add_in_second(arena, state, value);
            } else {
                count_value(arena, state, pb_percentiles_count_of(state, value));
            }
        }
    }
    if (values > 0) {
        atomicAdd(&arena.values, values);
    }
    group.sync();
    for (uint32_t i = group.thread; i < HELD_COUNTS; i += group.threads) {
        if (arena.n[i] > 0) {
            add_to_state(state, arena.count_of[i], arena.n[i]);
        }
    }
    if (group.thread == 0 && !state->second) {
        atomicAdd(reinterpret_cast<unsigned long long *>(&state->values),
                  static_cast<unsigned long long>(arena.values));
    }
}
#endif
