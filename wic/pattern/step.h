/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_STEP_H
#define WIC_STEP_H
/* A step of an exchange: `count` chunks that go one way, from one party to another. Plain data of
 * 64 bytes, the same for every compiler, for host and device code.
 *
 * The access pattern says in which order a step takes its chunks first .. first + count - 1
 * (wic_step_chunk below is the definition), and what the receiver keeps:
 *   streaming       as they come
 *   adjacent        as they come, and a chunk is worked on together with those of the same step up
 *                   to `reach` before and after it (a stencil): the receiver holds up to
 *                   2 * reach + 1 slots at a time (wic_step_window), so a ring has at least as many
 *   scatter-gather  by columns of a table of `stride` columns: first, first + stride, first + 2 *
 *                   stride, ... then first + 1, first + 1 + stride, ...; count % stride == 0
 *   random          in an order that `seed` decides, each chunk once */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_PARTIES_MAX 16u

/* Works in device code, too; needs nothing but this header. */
#ifdef __CUDACC__
#define WIC_STEP_INLINE static inline __host__ __device__
#else
#define WIC_STEP_INLINE static inline
#endif

enum wic_access { WIC_STREAMING, WIC_ADJACENT, WIC_SCATTER_GATHER, WIC_RANDOM };

/* The outcome of the step decides what follows: its sender tells it (struct wic_outcome). */
#define WIC_STEP_TOLD 1u

struct wic_step {
    uint16_t from, to; /* two parties */
    uint16_t access;   /* enum wic_access */
    uint16_t flags;    /* WIC_STEP_TOLD */
    /* Each way (from, to) numbers its chunks from 0; steps take them without gap or overlap, so
     * `first` is what the steps before have moved this way. */
    uint64_t first;
    uint64_t count;       /* at least 1; WIC_STEP_TOLD: at most so many, if the way is open */
    uint64_t chunk_bytes; /* 1 .. the parameters' chunk_bytes */
    uint64_t seed;        /* random, else 0 */
    /* A dependency: the sender begins when party `after_party` has finished the first `after_steps`
     * of the steps that it takes part in. 0, 0: at once. */
    uint64_t after_steps;
    uint32_t after_party;
    uint32_t reach;    /* adjacent, else 0 */
    uint32_t stride;   /* scatter-gather, else 0 */
    uint32_t reserved; /* 0 */
};

/* What came of a step. Its sender decides it and hands it on with the step's last chunk, so that
 * all parties tell their schedules the same. */
struct wic_outcome {
    uint64_t count; /* chunks that were moved; fewer than the step's: the open way has ended */
    uint64_t value; /* what the sender says of the data, for the pattern */
};

WIC_STEP_INLINE int wic_step_has_party(const struct wic_step *step, uint32_t party)
{
    return step->from == party || step->to == party;
}

/* A permutation of 0 .. count - 1: four Feistel rounds on the least even number of bits that holds
 * count, again until the number is below count (fewer than 4 times on average). */
WIC_STEP_INLINE uint64_t wic_step_shuffle(uint64_t seed, uint64_t count, uint64_t k)
{
    uint32_t half = 1;
    while (half < 31 && ((uint64_t)1 << (2 * half)) < count) {
        half++;
    }
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = k >> half;
        uint64_t right = k & mask;
        for (uint64_t round = 1; round <= 4; round++) {
            uint64_t mixed = (right + seed + round * UINT64_C(0x9e3779b97f4a7c15));
            mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
            mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
            uint64_t next = left ^ ((mixed ^ (mixed >> 31)) & mask);
            left = right;
            right = next;
        }
        k = left << half | right;
    } while (k >= count);
    return k;
}

/* The number of the k-th chunk (0 .. count - 1) of a step that was checked. */
WIC_STEP_INLINE uint64_t wic_step_chunk(const struct wic_step *step, uint64_t k)
{
    if (step->access == WIC_SCATTER_GATHER) {
        uint64_t rows = step->count / step->stride;
        return step->first + k % rows * step->stride + k / rows;
    }
    if (step->access == WIC_RANDOM) {
        return step->first + wic_step_shuffle(step->seed, step->count, k);
    }
    return step->first + k;
}

/* The chunks that the k-th one of a step that moves `count` is worked on with, as places in the
 * step: *low .. *high, itself among them. Both grow with k. */
WIC_STEP_INLINE void wic_step_window(const struct wic_step *step, uint64_t count, uint64_t k,
                                     uint64_t *low, uint64_t *high)
{
    uint64_t after = count - 1 - k;
    *low = k < step->reach ? 0 : k - step->reach;
    *high = after < step->reach ? count - 1 : k + step->reach;
}

#ifdef __cplusplus
}
#endif
#endif
