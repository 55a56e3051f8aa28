/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SYNC_ALL_H
#define PB_SYNC_ALL_H
/* fsync of several files at a time. Each waits for the disk, and a file system with a journal
 * writes one record for all that come together. Thread: any; it starts some and waits for them. */
#include <stddef.h>

#define PB_SYNC_ALL_MAX 8

/* n: PB_SYNC_ALL_MAX at most. 0, or the first negative errno in the order of the array. What cannot
 * be synced at all (EINVAL, ENOTSUP: directories of some file systems) is none. */
int pb_sync_all(const int *fd, size_t n);
#endif
