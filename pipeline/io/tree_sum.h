/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TREE_SUM_H
#define PB_TREE_SUM_H
/* BLAKE3 of a file whose bytes are known in any order. BLAKE3 is a tree over the positions of a
 * file: each granule (a whole subtree) is hashed by itself, by any thread, and the root is made
 * of the granules' results at the end. No I/O. */
#include "pipeline/io/checksum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of each granule but the last. */
#define PB_TREE_GRANULE ((size_t)256 << 10)

struct pb_tree_sum;

/* Memory that create allocates. */
uint64_t pb_tree_sum_memory(uint64_t total);
/* total: length of the file in bytes. NULL = out of memory. */
struct pb_tree_sum *pb_tree_sum_create(uint64_t total);
/* Count of granules, at least 1: an empty file has an empty one. */
uint64_t pb_tree_sum_granules(const struct pb_tree_sum *tree);
size_t pb_tree_sum_bytes(const struct pb_tree_sum *tree, uint64_t granule);
/* Counts bytes of a granule as written. Returns true in the thread that completes it, which sees
 * the bytes of all others. Each byte must be counted once. Thread: any. */
bool pb_tree_sum_count(struct pb_tree_sum *tree, uint64_t granule, size_t bytes);
/* Hashes a whole granule; call it once for each. Thread: any. */
void pb_tree_sum_add(struct pb_tree_sum *tree, uint64_t granule, const void *data);
bool pb_tree_sum_has(const struct pb_tree_sum *tree, uint64_t granule);
/* Writes the checksum after all granules were added; all adding threads have been joined. */
void pb_tree_sum_text(const struct pb_tree_sum *tree, char out_text[PB_CHECKSUM_TEXT_BYTES]);
void pb_tree_sum_destroy(struct pb_tree_sum *tree); /* NULL is fine */
#endif
