/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Locks: one, held for a few instructions a block. */
#include "pipeline/cog/pyramid_level.h"

#include <errno.h>
#include <stdlib.h>

int pb_pyramid_level_create(struct pb_pyramid_level *level, struct pb_pyramid_held held,
                            size_t half_px)
{
    const size_t blocks = (size_t)level->cols * (size_t)level->rows, slots = held.blocks;
    level->map = malloc(blocks * sizeof *level->map);
    level->free_slot = malloc(slots * sizeof *level->free_slot);
    level->free_half = malloc(held.halves * sizeof *level->free_half);
    level->half = malloc(slots * sizeof *level->half);
    level->missing = calloc(slots, sizeof *level->missing);
    level->empty = calloc(slots, sizeof *level->empty);
    level->half_px = half_px;
    level->pixels = malloc(held.halves * half_px * sizeof *level->pixels);
    if (level->map == NULL || level->free_slot == NULL || level->free_half == NULL ||
        level->half == NULL || level->missing == NULL || level->empty == NULL ||
        level->pixels == NULL || pthread_mutex_init(&level->lock, NULL) != 0)
        return -ENOMEM;
    level->locked = true;
    for (size_t i = 0; i < blocks; i++)
        level->map[i] = -1;
    for (uint32_t i = 0; i < held.blocks; i++)
        level->free_slot[i] = held.blocks - 1 - i;
    for (uint32_t i = 0; i < held.halves; i++)
        level->free_half[i] = held.halves - 1 - i;
    level->n_free = held.blocks;
    level->n_free_halves = held.halves;
    return 0;
}

void pb_pyramid_level_destroy(struct pb_pyramid_level *level)
{
    if (level->locked)
        pthread_mutex_destroy(&level->lock);
    free(level->map);
    free(level->free_slot);
    free(level->free_half);
    free(level->half);
    free(level->missing);
    free(level->empty);
    free(level->pixels);
}

/* Call it with the lock held: takes a slot for the block. */
static bool take_slot(struct pb_pyramid_level *level, int32_t *entry, uint32_t children)
{
    if (level->n_free == 0)
        return false;
    *entry = (int32_t)level->free_slot[--level->n_free];
    level->half[*entry][0] = level->half[*entry][1] = -1;
    atomic_store_explicit(&level->missing[*entry], children, memory_order_relaxed);
    atomic_store_explicit(&level->empty[*entry], 0, memory_order_relaxed);
    return true;
}

/* Call it with the lock held: takes memory for the missing halves. */
static bool take_halves(struct pb_pyramid_level *level, int32_t *half, unsigned halves)
{
    for (unsigned i = 0; i < 2; i++)
        if ((halves & (1u << i)) != 0 && half[i] < 0) {
            if (level->n_free_halves == 0)
                return false;
            half[i] = (int32_t)level->free_half[--level->n_free_halves];
        }
    return true;
}

bool pb_pyramid_level_hold(struct pb_pyramid_level *level, int32_t col, int32_t row,
                           uint32_t children, unsigned halves, uint32_t *out_slot)
{
    int32_t *entry = &level->map[(size_t)row * (size_t)level->cols + (size_t)col];
    pthread_mutex_lock(&level->lock);
    bool is_held = *entry >= 0 || take_slot(level, entry, children);
    is_held = is_held && take_halves(level, level->half[*entry], halves);
    *out_slot = (uint32_t)*entry;
    pthread_mutex_unlock(&level->lock);
    return is_held;
}

void pb_pyramid_level_let_go(struct pb_pyramid_level *level, uint32_t slot)
{
    pthread_mutex_lock(&level->lock);
    for (int i = 0; i < 2; i++)
        if (level->half[slot][i] >= 0)
            level->free_half[level->n_free_halves++] = (uint32_t)level->half[slot][i];
    level->free_slot[level->n_free++] = slot;
    pthread_mutex_unlock(&level->lock);
}
