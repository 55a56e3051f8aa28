/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SYNC_ALL_H
#define PB_SYNC_ALL_H
/* fsync of several files at a time. Each waits for the disk, and a file system with a journal
 * writes one record for all concurrent calls. Thread: any; it starts some threads and waits for
 * them. */
#include <stddef.h>

#define PB_SYNC_ALL_MAX 8

/* n: PB_SYNC_ALL_MAX at most. Returns 0, or the first negative errno in the order of the array.
 * Files that do not support fsync (EINVAL, ENOTSUP: directories of some file systems) are not
 * errors. */
int pb_sync_all(const int *fd, size_t n);
#endif
