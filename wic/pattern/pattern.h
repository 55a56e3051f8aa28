/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_PATTERN_H
#define WIC_PATTERN_H
/* Communication patterns: in which direction, in what portions and in which order data goes between
 * two devices D0 and D1 (host and GPU, say), over one channel each way. A pattern is a struct of
 * functions that yield transfer *steps*, and a step is plain data. So a host thread and a resident
 * kernel replay the same schedule, and no function pointer ever reaches a device.
 *
 * This header is all that a plugin needs: it links to nothing of the host. A plugin is one file
 *
 *     #include "wic/pattern/pattern.h"
 *     WIC_PATTERN_EXPORT = {WIC_PATTERN_ABI, sizeof(struct wic_pattern), "alternating",
 *                           "what it is for", create, next, destroy};
 *
 * built as alternating.so and loaded by wic/pattern/plugin.h. Patterns built in (wic_pattern_find)
 * are the same struct. The steps of a pattern are checked (wic_schedule_next), as a plugin is
 * foreign code.
 *
 * The models of communication, as steps. n = chunks[0], m = chunks[1] of the parameters:
 *   unidirectional  (D0->D1)^N                       built in: steps D0->D1 of at most `slots`
 *                                                    chunks until n are moved; m must be 0
 *   alternating     (D0->D1, D1->D0)^N               a step of 1 chunk D0->D1, one of 1 D1->D0, and
 *                                                    so on; n == m
 *   multiple        ((D0->D1)^n0, (D1->D0)^n1)^N     arguments n0 and n1: a step of n0 chunks
 *                                                    D0->D1, one of n1 D1->D0; what is left at the
 *                                                    end of a direction makes a shorter step
 *   probabilistic   as multiple, with the direction  a generator seeded with the parameters' seed
 *                   and n0, n1 drawn anew each time  draws direction and count, cut to what is
 *                                                    left. The same seed gives the same steps: no
 *                                                    other randomness may be used
 * The access patterns say in which order a step takes its chunks first .. first + count - 1:
 *   streaming       as they come
 *   adjacent        as they come, and a chunk is worked on together with `reach` chunks before and
 *                   after it (a stencil): the consumer keeps 2 * reach + 1 slots, so no step may
 *                   ask for more than the ring has
 *   scatter-gather  by columns of a table of `stride` columns: first, first + stride, first + 2 *
 *                   stride, ... then first + 1, first + 1 + stride, ...; count % stride == 0
 *   random          in an order that `seed` decides, each chunk once
 * wic_step_chunk() below is the definition of these orders, for host and device code.
 *
 * How this grows. Structs get new members at their end only. `size` says how much of one there is:
 * the host reads of a wic_pattern no more than its size, a plugin reads of wic_pattern_params no
 * more than its size. A step is always 64 bytes; new members come out of `reserved`, which is 0, so
 * that a host rejects members that it does not know. A change that breaks these rules changes
 * WIC_PATTERN_ABI.
 *
 * Threads: a pattern may be used by several threads, one state by one at a time. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_PATTERN_ABI        1u
#define WIC_PATTERN_NAME_MAX   32  /* with the terminator; a-z, then a-z 0-9 _ */
#define WIC_PATTERN_DOC_MAX    512 /* with the terminator */
#define WIC_PATTERN_ARGS_MAX   16
#define WIC_PATTERN_CHUNKS_MAX (UINT64_C(1) << 40) /* of one direction */

/* Works in device code, too; needs nothing but this header. */
#ifdef __CUDACC__
#define WIC_STEP_INLINE static inline __host__ __device__
#else
#define WIC_STEP_INLINE static inline
#endif

enum wic_direction { WIC_D0_TO_D1 = 0, WIC_D1_TO_D0 = 1 };
enum wic_access { WIC_STREAMING, WIC_ADJACENT, WIC_SCATTER_GATHER, WIC_RANDOM };

/* `count` chunks of one direction. Each direction numbers its chunks from 0; steps take them
 * without gap or overlap, so `first` is what the steps before have moved in this direction. */
struct wic_step {
    uint32_t direction; /* enum wic_direction */
    uint32_t access;    /* enum wic_access */
    uint64_t first;
    uint64_t count;       /* at least 1 */
    uint64_t chunk_bytes; /* 1 .. the parameters' chunk_bytes */
    uint64_t stride;      /* scatter-gather, else 0 */
    uint64_t seed;        /* random, else 0 */
    uint32_t reach;       /* adjacent, else 0 */
    uint32_t reserved[3]; /* 0 */
};

struct wic_pattern_arg {
    const char *name;
    uint64_t value;
};

/* What a schedule is for. Borrowed during create only. */
struct wic_pattern_params {
    uint32_t size;        /* sizeof(struct wic_pattern_params) of the host */
    uint32_t slots;       /* of the ring of each direction */
    uint64_t chunk_bytes; /* of a slot */
    uint64_t chunks[2];   /* to be moved in all, by enum wic_direction */
    uint64_t seed;        /* the only source of randomness */
    uint64_t arg_count;
    const struct wic_pattern_arg *args; /* the pattern's own; it refuses those it does not know */
};

struct wic_pattern {
    uint32_t abi;     /* WIC_PATTERN_ABI */
    uint32_t size;    /* sizeof(struct wic_pattern) of the plugin */
    const char *name; /* as the file is called */
    const char *doc;  /* a line or two for people */
    /* Starts a schedule. 0 or negative errno (-EINVAL: this pattern cannot do that). */
    int (*create)(const struct wic_pattern_params *params, void **out_state);
    /* 1 and the next step, 0 when all chunks are moved, or negative errno. *out_step is all 0 on
     * entry. Must not block. */
    int (*next)(void *state, struct wic_step *out_step);
    /* NULL is fine. */
    void (*destroy)(void *state);
};

/* What a plugin defines, once. */
#define WIC_PATTERN_SYMBOL "wic_pattern_plugin"
#define WIC_PATTERN_EXPORT                                                                         \
    extern const struct wic_pattern wic_pattern_plugin;                                            \
    __attribute__((visibility("default"))) const struct wic_pattern wic_pattern_plugin

/* --- the order of a step's chunks --- */

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

#ifdef __cplusplus
}
#endif
#endif
