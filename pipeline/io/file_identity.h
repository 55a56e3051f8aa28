/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_IDENTITY_H
#define PB_FILE_IDENTITY_H
/* Identity of a file at some time: device, inode, size, mtime and ctime (a rewrite that restores
 * the mtime changes the ctime), as one line of text that can be stored. */
#include <stdbool.h>
#include <sys/stat.h>

#define PB_FILE_IDENTITY_BYTES 128

void pb_file_identity_print(const struct stat *st, char out[PB_FILE_IDENTITY_BYTES]);
/* Restricts this process to opening rasters that are this file, so that a path cannot be
 * redirected to another file after the request. NULL or "" = any file again. Thread: the one
 * that starts all others that open rasters. */
void pb_file_identity_expect(const char *identity);
/* Returns true if an opened file is the expected one, or if no file is expected. Thread: any. */
bool pb_file_identity_is_expected(const struct stat *st);
#endif
