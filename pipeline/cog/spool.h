/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SPOOL_H
#define PB_SPOOL_H
/* A nameless temporary file to which several threads append extents in any order, and from which
 * they are read by offset and length. It is freed with its descriptor, also after a crash. */
#include "config/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct pb_spool;

/* Where an extent is. All zero = none: no extent is empty. */
struct pb_spool_extent {
    uint64_t offset;
    uint64_t bytes;
};

/* directory is borrowed until destroy. 0, or output.denied, output.full, output.write. */
int pb_spool_create(const char *directory, struct pb_err *err, struct pb_spool **out_spool);
/* Thread: any, without a lock. */
int pb_spool_append(struct pb_spool *spool, const void *data, size_t bytes, struct pb_err *err,
                    struct pb_spool_extent *out_extent);
/* Reads bytes at offset, which were appended before. Thread: any. */
int pb_spool_read(const struct pb_spool *spool, uint64_t offset, void *data, size_t bytes,
                  struct pb_err *err);
void pb_spool_destroy(struct pb_spool *spool); /* NULL is fine */
#endif
