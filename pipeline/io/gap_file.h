/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GAP_FILE_H
#define PB_GAP_FILE_H
/* File whose parts are written by several threads in any order, with gaps after parts of yet
 * unknown length. The checksum is computed in one of two ways: in the order of the file, or as
 * the tree of a BLAKE3 (tree_sum.h), for which several threads read back the parts that were not
 * hashed while they were written. At the end the gaps are closed. The disk begins to write while
 * the file is made, so that the final fsync is short. After an error it can only be destroyed. */
#include "config/base/err.h"
#include "pipeline/io/file_out.h"
#include "pipeline/io/gap_close.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct pb_gap_file;

/* Bytes of memory of each kind of checksum, in addition to pb_tree_sum_memory. */
#define PB_GAP_FILE_BYTES   (UINT64_C(1) << 20)
#define PB_GAP_FILE_THREADS 4
/* Limit of the gaps of a file with a tree. */
#define PB_GAP_FILE_GAPS 2

/* Buffers of one write. */
#define PB_GAP_PARTS_MAX 512

/* Creates (or empties) the file. expected_bytes: 0, or its final length (pb_file_room). path is
 * borrowed until destroy. Thread: init. */
int pb_gap_file_create(const char *path, uint64_t expected_bytes, struct pb_err *err,
                       struct pb_gap_file **out_file);
/* progress: borrowed until destroy; NULL = none. Call right after create. */
void pb_gap_file_watch(struct pb_gap_file *file, struct pb_file_progress *progress);
/* Returns true if the file may have that length while its gaps exist: a gap costs no space, and
 * neither the file system nor the process's limit of file sizes forbids it. Call before the
 * first write; the file is empty afterwards. Thread: init. */
bool pb_gap_file_may_reach(struct pb_gap_file *file, uint64_t end);
/* Closes gaps by moving data on any file system: for tests. Call right after create. */
void pb_gap_file_move(struct pb_gap_file *file);
/* From here on one thread processes the file from its first byte to its last, with
 * pb_gap_file_write() or, for ranges written before, pb_gap_file_take(). The checksum is
 * computed meanwhile, for long parts by a separate thread. */
int pb_gap_file_sum(struct pb_gap_file *file, enum pb_checksum checksum, struct pb_err *err);
/* Computes the BLAKE3 of a file without gaps, of `total` bytes, while it is written: the thread
 * that completes a granule hashes it. Call it before the first write. Thread: init. */
int pb_gap_file_tree_early(struct pb_gap_file *file, uint64_t total, struct pb_err *err);
struct pb_gap_file_tree {
    uint64_t total; /* bytes of the finished file */
    uint64_t ready; /* all bytes from that offset of the finished file on are written */
    struct pb_gap gap[PB_GAP_FILE_GAPS];
    size_t n_gaps;
    uint32_t threads; /* at a time, the caller's included; up to PB_GAP_FILE_THREADS are used */
};
/* Begins to read back and hash the ready bytes, by threads of its own, for a BLAKE3. From here on
 * only the calling thread writes; finish hashes the rest. */
int pb_gap_file_tree(struct pb_gap_file *file, const struct pb_gap_file_tree *tree,
                     struct pb_err *err);
/* After sum(): reads back and hashes bytes from `at` on of the file with its gaps; the range has
 * no gap. Without effect on a tree. */
int pb_gap_file_take(struct pb_gap_file *file, uint64_t at, uint64_t bytes, struct pb_err *err);
/* Writes n buffers, up to PB_GAP_PARTS_MAX, in sequence at offset `at` of the file with its
 * gaps. Allocates nothing; parts is modified. Thread: any. */
int pb_gap_file_write(struct pb_gap_file *file, uint64_t at, struct iovec *parts, int n,
                      struct pb_err *err);
/* Call once, after the checksum was begun and after the last byte: closes the gaps, cuts the file
 * at `total`, fsyncs and closes it. */
int pb_gap_file_finish(struct pb_gap_file *file, uint64_t total, const struct pb_gap *gaps,
                       size_t n_gaps, struct pb_err *err,
                       char out_checksum[PB_CHECKSUM_TEXT_BYTES]);
/* Closes; an unfinished file is removed. NULL is fine. */
void pb_gap_file_destroy(struct pb_gap_file *file);
#endif
