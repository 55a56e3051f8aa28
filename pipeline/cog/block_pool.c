/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/cog/block_pool.h"
#include "pipeline/io/pages.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)32 << 10)

struct pb_block_pool {
    char *chunks;   /* n */
    uint32_t *next; /* indexed by chunk: next chunk of the block, or of the free list */
    uint32_t free;  /* first free chunk, or PB_BLOCK_POOL_NONE */
    uint32_t n, n_free;
};

static uint64_t count(uint64_t bytes)
{
    return bytes / CHUNK_BYTES + (bytes % CHUNK_BYTES != 0);
}

uint64_t pb_block_pool_bytes(uint64_t bytes)
{
    return sizeof(struct pb_block_pool) + count(bytes) * (CHUNK_BYTES + sizeof(uint32_t));
}

struct pb_block_pool *pb_block_pool_create(uint64_t bytes)
{
    struct pb_block_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    uint32_t n = (uint32_t)count(bytes);
    pool->n = n;
    pool->chunks = pb_pages_alloc(n * CHUNK_BYTES);
    pool->next = malloc(n * sizeof *pool->next);
    if (pool->chunks == NULL || pool->next == NULL) {
        pb_block_pool_destroy(pool);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        pool->next[i] = i + 1 < n ? i + 1 : PB_BLOCK_POOL_NONE;
    pool->n_free = n;
    pool->free = n > 0 ? 0 : PB_BLOCK_POOL_NONE;
    return pool;
}

void pb_block_pool_destroy(struct pb_block_pool *pool)
{
    if (pool == NULL)
        return;
    pb_pages_free(pool->chunks, pool->n * CHUNK_BYTES);
    free(pool->next);
    free(pool);
}

uint32_t pb_block_pool_take(struct pb_block_pool *pool, uint64_t bytes)
{
    uint64_t n = count(bytes);
    if (n == 0 || n > pool->n_free)
        return PB_BLOCK_POOL_NONE;
    uint32_t first = pool->free, last = first;
    for (uint64_t i = 1; i < n; i++)
        last = pool->next[last];
    pool->free = pool->next[last];
    pool->next[last] = PB_BLOCK_POOL_NONE;
    pool->n_free -= (uint32_t)n;
    return first;
}

void pb_block_pool_fill(struct pb_block_pool *pool, uint32_t chunk, const void *data, size_t bytes)
{
    const char *from = data;
    for (size_t done = 0; done < bytes; chunk = pool->next[chunk]) {
        size_t n = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
        memcpy(pool->chunks + chunk * CHUNK_BYTES, from + done, n);
        done += n;
    }
}

const char *pb_block_pool_at(const struct pb_block_pool *pool, uint32_t chunk, uint64_t from,
                             size_t most, size_t *out_bytes)
{
    for (; from >= CHUNK_BYTES; from -= CHUNK_BYTES)
        chunk = pool->next[chunk];
    size_t room = CHUNK_BYTES - (size_t)from;
    *out_bytes = most < room ? most : room;
    return pool->chunks + chunk * CHUNK_BYTES + from;
}

void pb_block_pool_read(const struct pb_block_pool *pool, uint32_t chunk, uint64_t from, void *data,
                        size_t bytes)
{
    char *to = data;
    for (size_t done = 0, n; done < bytes; done += n) {
        const char *piece = pb_block_pool_at(pool, chunk, from + done, bytes - done, &n);
        memcpy(to + done, piece, n);
    }
}

void pb_block_pool_give(struct pb_block_pool *pool, uint32_t chunk)
{
    uint32_t last = chunk, n = 1;
    for (; pool->next[last] != PB_BLOCK_POOL_NONE; n++)
        last = pool->next[last];
    pool->next[last] = pool->free;
    pool->free = chunk;
    pool->n_free += n;
}
