/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_POOL_H
#define PB_BLOCK_POOL_H
/* A fixed amount of memory for blocks of any size, in chunks that are chained: no block needs
 * neighbouring ones, so nothing is lost but parts of last chunks. No locks: the owner sees to it
 * that take and give are called by one thread at a time, and that nobody gives what is in use. */
#include <stddef.h>
#include <stdint.h>

struct pb_block_pool;

#define PB_BLOCK_POOL_NONE UINT32_MAX

/* Memory that create takes for a pool of so many bytes. */
uint64_t pb_block_pool_bytes(uint64_t bytes);
/* bytes: rounded up to whole chunks. NULL = out of memory. */
struct pb_block_pool *pb_block_pool_create(uint64_t bytes);
/* The first chunk of a chain for a block of so many bytes; PB_BLOCK_POOL_NONE: not so much is free.
 */
uint32_t pb_block_pool_take(struct pb_block_pool *pool, uint64_t bytes);
void pb_block_pool_fill(struct pb_block_pool *pool, uint32_t chunk, const void *data, size_t bytes);
/* Reads from byte `from` of the block. */
void pb_block_pool_read(const struct pb_block_pool *pool, uint32_t chunk, uint64_t from, void *data,
                        size_t bytes);
/* Where byte `from` of the block lies, and how many are there in a row, up to `most`. */
const char *pb_block_pool_at(const struct pb_block_pool *pool, uint32_t chunk, uint64_t from,
                             size_t most, size_t *out_bytes);
void pb_block_pool_give(struct pb_block_pool *pool, uint32_t chunk); /* the chain */
void pb_block_pool_destroy(struct pb_block_pool *pool);              /* NULL is fine */
#endif
