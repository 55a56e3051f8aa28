/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_POOL_H
#define PB_BLOCK_POOL_H
/* A fixed amount of memory for blocks of any size, in linked chunks: a block needs no
 * neighbouring chunks, therefore only parts of last chunks are wasted. No locks: the owner must
 * ensure that take and give are called by one thread at a time, and that no block in use is given
 * back. */
#include <stddef.h>
#include <stdint.h>

struct pb_block_pool;

#define PB_BLOCK_POOL_NONE UINT32_MAX

/* Memory that create allocates for a pool of that size. */
uint64_t pb_block_pool_bytes(uint64_t bytes);
/* bytes: rounded up to whole chunks. NULL = out of memory. */
struct pb_block_pool *pb_block_pool_create(uint64_t bytes);
/* First chunk of a chain for a block of that size; PB_BLOCK_POOL_NONE: not enough free memory.
 */
uint32_t pb_block_pool_take(struct pb_block_pool *pool, uint64_t bytes);
void pb_block_pool_fill(struct pb_block_pool *pool, uint32_t chunk, const void *data, size_t bytes);
/* Reads from byte `from` of the block. */
void pb_block_pool_read(const struct pb_block_pool *pool, uint32_t chunk, uint64_t from, void *data,
                        size_t bytes);
/* Address of byte `from` of the block, and count of contiguous bytes there, up to `most`. */
const char *pb_block_pool_at(const struct pb_block_pool *pool, uint32_t chunk, uint64_t from,
                             size_t most, size_t *out_bytes);
void pb_block_pool_give(struct pb_block_pool *pool, uint32_t chunk); /* gives back the chain */
void pb_block_pool_destroy(struct pb_block_pool *pool);              /* NULL is fine */
#endif
