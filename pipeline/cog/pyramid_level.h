/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PYRAMID_LEVEL_H
#define PB_PYRAMID_LEVEL_H
/* Incomplete blocks of a level of a pyramid, and the memory of their upper and lower halves: as
 * many as pyramid_bound.c proves to be enough, all allocated by create. Thread: any, except for
 * create and destroy. */
#include "pipeline/cog/pyramid_bound.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_pyramid_level {
    int32_t cols, rows, w, h; /* size of the level in blocks and pixels; set by the owner */
    /* Indexed by slot of a block. missing: count of children that have not arrived; empty: a bit
     * for each child without a valid pixel, whose pixels are absent. */
    _Atomic uint32_t *missing;
    _Atomic uint8_t *empty;

    pthread_mutex_t lock; /* protects map and the free lists */
    bool locked;          /* the mutex exists */
    int32_t *map;         /* block -> slot, -1 if absent */
    uint32_t *free_slot, *free_half;
    uint32_t n_free, n_free_halves;
    /* Indexed by slot: memory of its halves, -1 if absent; a thread that holds a half, or owns the
     * block, reads it without the lock. */
    int32_t (*half)[2];
    size_t half_px;
    float *pixels; /* indexed by half */
};

enum { PB_PYRAMID_UPPER = 1, PB_PYRAMID_LOWER = 2 };

/* level: zeroed except its size; must be destroyed also after a failure. half_px: pixels of a half
 * over all planes. 0 or -ENOMEM. */
int pb_pyramid_level_create(struct pb_pyramid_level *level, struct pb_pyramid_held held,
                            size_t half_px);
void pb_pyramid_level_destroy(struct pb_pyramid_level *level); /* zeroed is fine */
/* Slot of a block, with these halves: a free one, with that many children missing, if the block has
 * no slot yet. False: no free memory. */
bool pb_pyramid_level_hold(struct pb_pyramid_level *level, int32_t col, int32_t row,
                           uint32_t children, unsigned halves, uint32_t *out_slot);
/* Frees a finished block. */
void pb_pyramid_level_let_go(struct pb_pyramid_level *level, uint32_t slot);
/* Pixels of half 0 or 1, which must be held. */
static inline float *pb_pyramid_level_pixels(const struct pb_pyramid_level *level, uint32_t slot,
                                             int32_t half)
{
    return level->pixels + (size_t)level->half[slot][half] * level->half_px;
}
#endif
