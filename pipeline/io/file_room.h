/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_ROOM_H
#define PB_FILE_ROOM_H
/* Disk space for a file whose length is known before it is written: detects a full disk before
 * the work. Thread: any. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns output.full if fewer than `bytes` are free where the open file is, output.limit if the
 * whole file system has fewer. Up to 16 GiB and a quarter of the free space are reserved if the
 * file system can; the file gets that length. path: for messages. */
int pb_file_room(int fd, const char *path, uint64_t bytes, struct pb_err *err);
/* The same for future files in a directory, or in the nearest existing one above it; reserves
 * nothing. */
int pb_file_room_below(const char *directory, uint64_t bytes, struct pb_err *err);
/* Returns true if files of `bytes` bytes, written where the open file is until no space was
 * left, take nine tenths of the whole file system: waiting for space would not help. */
bool pb_file_room_never(int fd, uint64_t bytes);
#endif
