/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_OUT_H
#define PB_FILE_OUT_H
/* A file written from front to back through one large buffer, its SHA-256 taken on the way. A long
 * file has two threads of its own, one that writes a part and one that hashes it, while the next
 * part is filled. Parts whose offset is known may be written before that, in any order; they are
 * read back for the checksum later. After an error it can only be destroyed. One caller's thread,
 * but for place. */
#include "config/base/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct pb_file_out;

/* The progress of the files of a run, and a flag that aborts them. */
struct pb_file_progress {
    _Atomic uint64_t bytes; /* written so far, by all files that share this */
    atomic_bool stop; /* set by any thread: writing fails with job.dismissed at its next part */
};

/* Bytes it holds (the buffer). */
#define PB_FILE_OUT_BYTES (UINT64_C(4) << 20)

/* Creates (or empties) the file. expected_bytes: 0, or how long it will be: output.full when so
 * much is not free, pipeline.product when the whole file system has less; up to 16 GiB and a
 * quarter of what is free are reserved where the filesystem can. path is borrowed until destroy. */
int pb_file_out_create(const char *path, uint64_t expected_bytes, struct pb_err *err,
                       struct pb_file_out **out_file);
/* progress: borrowed until destroy; NULL = none. Right after create. */
void pb_file_out_watch(struct pb_file_out *file, struct pb_file_progress *progress);
int pb_file_out_add(struct pb_file_out *file, const void *data, size_t bytes, struct pb_err *err);
/* Room for up to *out_bytes > 0 bytes inside the buffer; what was filled in is added by commit. */
int pb_file_out_room(struct pb_file_out *file, struct pb_err *err, void **out_room,
                     size_t *out_bytes);
void pb_file_out_commit(struct pb_file_out *file, size_t bytes);
/* Writes n buffers one after the other at offset `at`, which add() must not reach. Allocates
 * nothing; parts is modified. Thread: any, while no other call runs. */
int pb_file_out_place(struct pb_file_out *file, uint64_t at, struct iovec *parts, int n,
                      struct pb_err *err);
/* The next bytes have all been placed: they go into the checksum and are not written again. */
int pb_file_out_add_placed(struct pb_file_out *file, uint64_t bytes, struct pb_err *err);
uint64_t pb_file_out_at(const struct pb_file_out *file); /* bytes added so far */
/* Flushes, fsyncs, closes. */
int pb_file_out_finish(struct pb_file_out *file, struct pb_err *err, char out_sha256[65]);
/* Closes; a file that was not finished is removed. NULL is fine. */
void pb_file_out_destroy(struct pb_file_out *file);
#endif
