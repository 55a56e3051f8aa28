/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Blocks of 16 KiB, cut from the front; a large request gets a block of its own. */
#include "config/base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 16384

struct block {
    struct block *next;
    alignas(max_align_t) unsigned char bytes[];
};

struct pb_arena {
    struct block *blocks; /* the first one is being cut */
    size_t used, capacity;
    bool failed;
};

static _Thread_local long good_requests = -1;

void pb_arena_fail_after(long good)
{
    good_requests = good;
}

static bool fails_now(void)
{
    if (good_requests < 0)
        return false;
    return good_requests-- == 0;
}

struct pb_arena *pb_arena_create(void)
{
    return fails_now() ? NULL : calloc(1, sizeof(struct pb_arena));
}

void pb_arena_destroy(struct pb_arena *arena)
{
    if (arena == NULL)
        return;
    for (struct block *block = arena->blocks; block;) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
    free(arena);
}

static bool add_block(struct pb_arena *arena, size_t bytes)
{
    size_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    struct block *block = calloc(1, sizeof *block + capacity);
    if (block == NULL)
        return false;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->capacity = capacity;
    arena->used = 0;
    return true;
}

void *pb_arena_alloc(struct pb_arena *arena, size_t count, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (arena == NULL)
        return NULL;
    size_t bytes = 0;
    if (fails_now() || __builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        arena->failed = true;
        return NULL;
    }
    bytes = bytes ? (bytes + align - 1) / align * align : align;
    if (arena->capacity - arena->used < bytes && !add_block(arena, bytes)) {
        arena->failed = true;
        return NULL;
    }
    void *memory = arena->blocks->bytes + arena->used;
    arena->used += bytes;
    return memory;
}

char *pb_arena_text(struct pb_arena *arena, const char *text, size_t bytes)
{
    char *copy = pb_arena_alloc(arena, bytes + 1, 1);
    if (copy && bytes)
        memcpy(copy, text, bytes);
    return copy;
}

bool pb_arena_failed(const struct pb_arena *arena)
{
    return arena == NULL || arena->failed;
}

void pb_arena_fail(struct pb_arena *arena)
{
    if (arena)
        arena->failed = true;
}
