// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_CLASSIFY_CUH
#define WIC_BENCH_CLASSIFY_CUH
// k-means of pixels that stay on the device: what all ways share.
#include "wic/bench/patterns/patterns.cuh"
#include "wic/device/barrier.cuh"

#include <algorithm>

namespace kmeans
{
constexpr uint32_t classes = 8, rounds_most = 20, threads = 512, value_bits = 12;

struct centres {
    int16_t at[classes][4]; // three bands and a gap
};
struct sums {
    unsigned long long of[classes][4]; // three bands, and pixels
};

__host__ __device__ inline uint32_t nearest(const centres &c, int r, int g, int b)
{
    uint32_t best = 0;
    int least = INT32_MAX;
    for (uint32_t k = 0; k < classes; k++) {
        const int x = r - c.at[k][0], y = g - c.at[k][1], z = b - c.at[k][2];
        const int distance = x * x + y * y + z * z;
        best = distance < least ? k : best;
        least = distance < least ? distance : least;
    }
    return best;
}

__device__ __forceinline__ uint32_t add_lanes(uint32_t sum)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_add_sync(~0u, sum);
#else
    for (uint32_t half = 16; half > 0; half /= 2) {
        sum += __shfl_xor_sync(~0u, sum, half);
    }
    return sum;
#endif
}

// Adds pixels first, first + step, ... before end to `to`, in shared memory.
__device__ __forceinline__ void add_pixels(const ushort4 *pixels, uint64_t first, uint64_t end,
                                           uint32_t step, const centres &given, sums *to)
{
    const centres c = given;
    uint32_t own[classes][4] = {};
    for (uint64_t i = first; i < end; i += step) {
        const ushort4 p = pixels[i];
        const uint32_t class_of = nearest(c, p.x, p.y, p.z);
#pragma unroll
        for (uint32_t k = 0; k < classes; k++) {
            const bool mine = class_of == k;
            own[k][0] += mine ? p.x : 0;
            own[k][1] += mine ? p.y : 0;
            own[k][2] += mine ? p.z : 0;
            own[k][3] += mine;
        }
    }
#pragma unroll
    for (uint32_t k = 0; k < classes; k++) {
        for (uint32_t band = 0; band < 4; band++) {
            const uint32_t sum = add_lanes(own[k][band]);
            if (threadIdx.x % 32 == 0) {
                atomicAdd_block(&to->of[k][band], static_cast<unsigned long long>(sum));
            }
        }
    }
}

__device__ __forceinline__ void clear(sums *to, uint32_t thread)
{
    if (thread < classes * 4) {
        (&to->of[0][0])[thread] = 0;
    }
}

// Sums of all blocks, in device memory.
struct total {
    sums of;
    uint32_t blocks; // that are in it
};

// Adds a block's sums to the total; the last block of a round stores that to `up` and clears it.
// True for that one's threads. sync: a barrier of the threads that call this, all of them warps.
template <class Sync>
__device__ __forceinline__ bool add_to_total(const sums &own, total *to, uint32_t blocks, sums *up,
                                             uint32_t thread, volatile bool *shared_flag, Sync sync)
{
    unsigned long long *word = &to->of.of[0][0] + thread;
    if (thread < classes * 4) {
        atomicAdd(word, (&own.of[0][0])[thread]);
        __threadfence();
    }
    sync();
    if (thread == 0) {
        *shared_flag = wic_add_device(&to->blocks, 1) == blocks - 1;
    }
    sync();
    if (*shared_flag && thread < classes * 4) {
        (&up->of[0][0])[thread] = atomicExch(word, 0);
    }
    if (*shared_flag && thread == 0) {
        to->blocks = 0;
    }
    return *shared_flag;
}

// --- the image ---

struct image {
    ushort4 *pixels; // on the device
    uint64_t count;
    uint32_t multiprocessors;
    total *sum;                 // on the device
    std::vector<centres> trace; // before round 0, after round 0, and so on, until nothing changes
};
extern image scene;

// What kernels take of it.
struct share {
    const ushort4 *pixels;
    uint64_t count;
};

// The next centres, in place; returns how many are others.
uint32_t next_centres(const sums &s, centres *c);

// The host's part, the same for all: centres of the round at hand, and their check.
struct rounds {
    uint32_t round = 0;
    uint64_t wrong = 0;
    centres now = scene.trace[0];

    // A round has ended. Returns how many centres are others.
    uint32_t end(const sums &s)
    {
        const uint32_t others = next_centres(s, &now);
        round++;
        const centres &wanted = scene.trace[std::min<size_t>(round, scene.trace.size() - 1)];
        wrong += !std::equal(&now.at[0][0], &now.at[0][0] + 4 * classes, &wanted.at[0][0]);
        if (others == 0 || round == rounds_most) {
            round = 0;
            now = scene.trace[0];
        }
        return others;
    }
};

std::unique_ptr<pattern_way> make_stream(const pattern_shape &); // copies and a kernel in a stream
std::unique_ptr<pattern_way> make_graph(const pattern_shape &);  // the same as a graph
// No copies: the kernel takes centres as its argument and stores sums to pinned memory.
std::unique_ptr<pattern_way> make_zero_copy(const pattern_shape &);
} // namespace kmeans
#endif
