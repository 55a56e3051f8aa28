/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_STORE_H
#define PB_BLOCK_STORE_H
/* Compressed blocks of a COG before they are in the file, in which they follow each other row by
 * row. The levels with most bytes each have a region of their own after a gap in the file (a run):
 * a block whose predecessors in its run are all known is written there at once. An early block
 * waits in memory, which is bounded, or else in a nameless file (spool.h), and is moved when its
 * predecessors are known. Blocks of other levels wait until the end. While all blocks fit into the
 * memory, or stay in their owner's, none is written: such a file needs neither gaps nor a spool. */
#include "config/base/err.h"
#include "pipeline/cog/tiff_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_block_store;

/* An encoded block. */
struct pb_block_bytes {
    const void *data;
    size_t bytes;
    /* true: the data stay valid and unchanged until the file is finished or abandoned; false: they
     * are valid during the call. */
    bool stays;
};

enum { PB_BLOCK_RUNS_MAX = 2 };

struct pb_block_store_options {
    struct pb_tiff_block *const *block; /* [level][block], zeroed; borrowed, filled here */
    const uint64_t *n_blocks;           /* [level]; borrowed */
    const char *directory;              /* for the spool; borrowed */
    struct pb_gap_file *file;           /* borrowed */
    uint32_t workers;
    uint64_t pool_bytes;
    struct {
        uint32_t level;
        uint64_t at; /* offset of its first block's leader, in the file with its gaps */
    } run[PB_BLOCK_RUNS_MAX];
    uint32_t n_runs;
};

/* Memory that create allocates for a store. */
uint64_t pb_block_store_bytes(uint32_t workers, uint64_t pool_bytes);
/* Copies options. Thread: init. */
int pb_block_store_create(const struct pb_block_store_options *options, struct pb_err *err,
                          struct pb_block_store **out_store);
/* Fails with the error for a block that was added twice, or not as announced. */
int pb_block_came_twice(uint32_t level, uint64_t block, struct pb_err *err);
/* Fails with the error for a block that was not added. */
int pb_block_is_missing(uint32_t level, uint64_t block, struct pb_err *err);
/* Announces a block of that size, which must be added then. If all before it in its run are known,
 * it has its place, and the blocks after it need not wait until it is added. Thread: any. */
void pb_block_store_expect(struct pb_block_store *store, uint32_t level, uint64_t block,
                           size_t bytes);
/* Takes a copy of the block unless it stays. Allocates nothing. Thread: any, worker < workers and
 * each worker on one thread at a time. */
int pb_block_store_add(struct pb_block_store *store, uint32_t level, uint64_t block,
                       const struct pb_block_bytes *bytes, uint32_t worker, struct pb_err *err);
/* After the last add, with all blocks known: moves all blocks of the runs to the file, and returns
 * the levels in the file as bits of *out_placed; 0 if no block had to be written yet. */
int pb_block_store_settle(struct pb_block_store *store, struct pb_err *err, uint64_t *out_placed);
/* After settle: implements pb_tiff_blocks.read, for levels that are not placed. user: the store. */
int pb_block_store_read(void *user, uint32_t level, uint64_t block, uint64_t from, void *data,
                        size_t bytes, struct pb_err *err);
/* After settle: implements pb_tiff_blocks.at. */
size_t pb_block_store_at(void *user, uint32_t level, uint64_t block, uint64_t from,
                         const void **out_data);
void pb_block_store_destroy(struct pb_block_store *store); /* NULL is fine */
#endif
