// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_TOLD_CUH
#define WIC_BENCH_TOLD_CUH
// What both sides of replay_told.cu share: memory, and the rules by which each decides.
#include "wic/bench/replay/replay.cuh"
#include "wic/pattern/pattern.h"

namespace told
{
constexpr uint32_t ring_slots = 4, ring_steps = 8; // a step has a chunk at least, or its way's end
constexpr size_t chunk_words = 512;                // of 8 bytes

enum device_end : uint64_t { NONE, DONE, LEFT };
enum telling { UNTIL_ZERO, NEXT_STEP }; // what the values are

// Pinned. A word has one writer; words that one side writes lie on lines of their own.
struct way {
    alignas(128) uint64_t published;         // chunks and ends, by the sender
    alignas(128) uint64_t allowed;           // that may be published, by the receiver
    alignas(128) uint64_t words[ring_slots]; // of a chunk; 0: the way has ended
    alignas(128) uint64_t slot[ring_slots][chunk_words];
};

struct table {
    way ways[2];                 // by the sender's number
    alignas(128) uint64_t given; // steps, by the host
    uint64_t last;               // steps that there are, once known
    uint64_t abort;
    alignas(128) wic_step steps[ring_steps];
    alignas(128) uint64_t told; // outcomes, by the device
    alignas(128) wic_outcome outcomes[ring_steps];
    alignas(128) uint64_t end, wrong; // by the device
};

struct rules {
    telling values;
    uint64_t ends[2]; // chunks of an open way, by its sender
};

// What has gone by on one side.
struct side {
    uint64_t turns[2], chunks[2];
    uint64_t sent, got; // the last chunk's value each way
};

__host__ __device__ inline uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

__host__ __device__ inline uint64_t chunk_value(const wic_step &step, uint64_t chunk,
                                                uint64_t got_before)
{
    return mixed(got_before + chunk + 1) + step.from;
}

// What a sender tells, by what it sent and got last.
__host__ __device__ inline uint64_t value_of(telling values, uint64_t sent, uint64_t got)
{
    const uint64_t random = mixed(sent + 3 * got);
    return values == UNTIL_ZERO ? random % 512 != 0 : 2 * (1 + (random >> 8) % 9) + random % 2;
}

// replay_told_device.cu: D1, one block.
void launch(table *t, const rules &follows, cudaStream_t stream);
} // namespace told
#endif
