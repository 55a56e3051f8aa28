/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_OUT_H
#define PB_FILE_OUT_H
/* A file written once from front to back, with its SHA-256, and on the disk when close says so. The
 * first error sticks; close reports it. One thread. */
#include "config/err.h"

#include <stddef.h>
#include <stdint.h>

struct pb_file_out;

/* Creates <directory>/<file> (or empties it). 0 or a negative errno with *err filled. */
int pb_file_out_create(const char *directory, const char *file, struct pb_err *err,
                       struct pb_file_out **out_file);
void pb_file_out_write(struct pb_file_out *out, const void *data, size_t bytes);
/* Flushes to the disk; *out_bytes and out_sha256 are written on success only. Frees nothing. */
int pb_file_out_close(struct pb_file_out *out, struct pb_err *err, uint64_t *out_bytes,
                      char out_sha256[65]);
void pb_file_out_destroy(struct pb_file_out *out); /* closes if need be; NULL is fine */
/* All of it at once. */
int pb_file_out_text(const char *directory, const char *file, const char *text, size_t bytes,
                     struct pb_err *err, uint64_t *out_bytes, char out_sha256[65]);
#endif
