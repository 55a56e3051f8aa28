/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_PART_H
#define PB_FILE_PART_H
/* A plain file, or the part of one that is a file of its own: a member of an archive that is stored
 * there as it is. Offsets of readers count from its beginning. Thread: any. */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pb_file_part {
    int fd;        /* borrowed */
    uint64_t base; /* where it begins in the file; 0 = it is the file */
    uint64_t bytes;
};

/* Reads up to `bytes` at `at`: how many, fewer only where the part or the file ends, or a negative
 * errno. done: how many were read before that; may be NULL. */
ssize_t pb_file_part_read(const struct pb_file_part *part, uint64_t at, void *out, size_t bytes,
                          size_t *done);
#endif
