/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_OUT_H
#define PB_FILE_OUT_H
/* File written sequentially through one large buffer, with its checksum computed meanwhile. A
 * long file has two threads of its own, one that writes a part and one that hashes it, while the
 * next part is filled. After an error it can only be destroyed. One caller's thread. */
#include "config/base/err.h"
#include "pipeline/io/checksum.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct pb_file_out;

/* Progress of the files of a run, and a flag that aborts them. */
struct pb_file_progress {
    _Atomic uint64_t bytes; /* written so far, by all files that share this */
    uint64_t most;          /* limit of bytes: more is output.limit; 0 = no limit */
    atomic_bool stop; /* set by any thread: writing fails with job.dismissed at its next part */
};

/* Counts written bytes; output.limit. progress NULL is fine. Thread: any. */
int pb_file_progress_add(struct pb_file_progress *progress, uint64_t bytes, struct pb_err *err);

/* Bytes of its memory (the buffer). */
#define PB_FILE_OUT_BYTES (UINT64_C(4) << 20)

/* Creates (or empties) the file. path is borrowed until destroy. */
int pb_file_out_create(const char *path, enum pb_checksum checksum, struct pb_err *err,
                       struct pb_file_out **out_file);
/* progress: borrowed until destroy; NULL = none. Call right after create. */
void pb_file_out_watch(struct pb_file_out *file, struct pb_file_progress *progress);
int pb_file_out_add(struct pb_file_out *file, const void *data, size_t bytes, struct pb_err *err);
uint64_t pb_file_out_at(const struct pb_file_out *file); /* bytes added so far */
/* Flushes, fsyncs, closes. */
int pb_file_out_finish(struct pb_file_out *file, struct pb_err *err,
                       char out_checksum[PB_CHECKSUM_TEXT_BYTES]);
/* Closes; an unfinished file is removed. NULL is fine. */
void pb_file_out_destroy(struct pb_file_out *file);
#endif
