/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PYRAMID_LEVEL_H
#define PB_PYRAMID_LEVEL_H
/* The incomplete blocks of a level of a pyramid, and the memory of their upper and lower halves: as
 * many as pyramid_bound.c proves to be enough, all taken by create. Thread: any, but for create and
 * destroy. */
#include "pipeline/cog/pyramid_bound.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_pyramid_level {
    int32_t cols, rows, w, h; /* of the level in blocks and pixels; set by the owner */
    /* By slot of a block. Children still to come; children without a valid pixel, a bit each, whose
     * pixels are not there. */
    _Atomic uint32_t *missing;
    _Atomic uint8_t *empty;

    pthread_mutex_t lock; /* map and what is free */
    bool locked;          /* the mutex exists */
    int32_t *map;         /* block -> slot, -1 = none */
    uint32_t *free_slot, *free_half;
    uint32_t n_free, n_free_halves;
    int32_t (*half)[2]; /* by slot: its halves' memory, -1 = none; one that is there is read without
                           the lock by whoever holds it, or has the block */
    size_t half_px;
    float *pixels; /* by half */
};

enum { PB_PYRAMID_UPPER = 1, PB_PYRAMID_LOWER = 2 };

/* level: zeroed but for its size; to be destroyed also after a failure. half_px: pixels of a half
 * of all planes. 0 or -ENOMEM. */
int pb_pyramid_level_create(struct pb_pyramid_level *level, struct pb_pyramid_held held,
                            size_t half_px);
void pb_pyramid_level_destroy(struct pb_pyramid_level *level); /* zeroed is fine */
/* The slot of a block, with these halves: a free one where it has none, with so many children
 * missing. False: nothing is free. */
bool pb_pyramid_level_hold(struct pb_pyramid_level *level, int32_t col, int32_t row,
                           uint32_t children, unsigned halves, uint32_t *out_slot);
/* The block is over. */
void pb_pyramid_level_let_go(struct pb_pyramid_level *level, uint32_t slot);
/* Of half 0 or 1, which is held. */
static inline float *pb_pyramid_level_pixels(const struct pb_pyramid_level *level, uint32_t slot,
                                             int32_t half)
{
    return level->pixels + (size_t)level->half[slot][half] * level->half_px;
}
#endif
