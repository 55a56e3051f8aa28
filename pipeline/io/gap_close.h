/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GAP_CLOSE_H
#define PB_GAP_CLOSE_H
/* Removes ranges from the middle of a file: by removing their blocks from its map if the file
 * system can (ext4, xfs), else by moving the data after them. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Range to remove. */
struct pb_gap {
    uint64_t at;    /* final offset of the bytes after it, with all gaps removed; ascending */
    uint64_t bytes; /* both are multiples of PB_GAP_ALIGN */
};

/* Block size of most file systems. If blocks are larger, data are moved. */
#define PB_GAP_ALIGN UINT64_C(4096)

/* Returns the current offset of byte `at` of the finished file while its gaps exist. */
uint64_t pb_gap_before(const struct pb_gap *gaps, size_t n, uint64_t at);

struct pb_gap_close {
    int fd;
    const struct pb_gap *gaps;
    size_t n;
    uint64_t total;          /* length of the finished file */
    bool move;               /* always moves data: for tests */
    char *buffer;            /* buffer for moving */
    size_t buffer_bytes;     /* at least 1 */
    const atomic_bool *stop; /* ends it with ECANCELED; NULL = never */
};

/* Returns 0 or an errno; after an error the file's content is undefined. Bytes beyond the total
 * are cut off. */
int pb_gap_close(const struct pb_gap_close *close);
#endif
