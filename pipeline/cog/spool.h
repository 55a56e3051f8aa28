/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SPOOL_H
#define PB_SPOOL_H
/* A nameless temporary file to which several threads append extents in any order, and from which
 * they are read by offset and length. It is created at the first append, and freed with its
 * descriptor, also after a crash. */
#include "config/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct pb_spool;

#define PB_SPOOL_BYTES UINT64_C(128) /* memory of a spool at most */

/* directory is borrowed until destroy. 0 or memory. */
int pb_spool_create(const char *directory, struct pb_err *err, struct pb_spool **out_spool);
/* 0, or output.denied, output.full, output.write. Allocates nothing. Thread: any. */
int pb_spool_append(struct pb_spool *spool, const void *data, size_t bytes, struct pb_err *err,
                    uint64_t *out_offset);
/* Reads bytes at offset, which were appended before. Thread: any. */
int pb_spool_read(const struct pb_spool *spool, uint64_t offset, void *data, size_t bytes,
                  struct pb_err *err);
/* An extent will not be read again: its space is freed if the file system supports it. */
void pb_spool_drop(const struct pb_spool *spool, uint64_t offset, uint64_t bytes);
void pb_spool_destroy(struct pb_spool *spool); /* NULL is fine */
#endif
