/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_IDENTITY_H
#define PB_FILE_IDENTITY_H
/* The identity of a file at some time: device, inode, size, mtime and ctime (a rewrite that
 * restores the mtime changes the ctime), as one line of text that can be stored. */
#include <stdbool.h>
#include <sys/stat.h>

#define PB_FILE_IDENTITY_BYTES 128

void pb_file_identity_print(const struct stat *st, char out[PB_FILE_IDENTITY_BYTES]);
/* From now on this process opens rasters only if they are this file, so that a path cannot be
 * redirected to another file after the request. NULL or "" = any file again. Thread: the one that
 * starts all others that open rasters. */
void pb_file_identity_expect(const char *identity);
/* Whether an opened file is the expected one; true when none is. Thread: any. */
bool pb_file_identity_is_expected(const struct stat *st);
#endif
