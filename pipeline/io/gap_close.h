/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GAP_CLOSE_H
#define PB_GAP_CLOSE_H
/* Removes ranges from the middle of a file: by taking their blocks out of its map where the file
 * system can (ext4, xfs), else by moving what comes after them. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range to be removed. */
struct pb_gap {
    uint64_t at;    /* where the bytes after it will be, when all gaps are removed; ascending */
    uint64_t bytes; /* both are multiples of PB_GAP_ALIGN */
};

/* Of most file systems' blocks. Where they are larger, data are moved. */
#define PB_GAP_ALIGN UINT64_C(4096)

/* Where byte `at` of the finished file is while its gaps are there. */
uint64_t pb_gap_before(const struct pb_gap *gaps, size_t n, uint64_t at);

struct pb_gap_close {
    int fd;
    const struct pb_gap *gaps;
    size_t n;
    uint64_t total;          /* length of the finished file */
    bool move;               /* also where the file system can do without: for tests */
    char *buffer;            /* for moving */
    size_t buffer_bytes;     /* at least 1 */
    const atomic_bool *stop; /* ends it with ECANCELED; NULL = nothing does */
};

/* 0 or an errno; after one the file's content is undefined. Bytes beyond the total are cut off. */
int pb_gap_close(const struct pb_gap_close *close);
#endif
