/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITERS_H
#define PB_WRITERS_H
/* Detects whether a process has a file open for writing. The kernel grants a read lease (fcntl(2))
 * only if no process has, shared writable mappings included; while the lease is held, a process
 * that opens the file for writing waits until it is released. A lease needs a file of the
 * service's own user or CAP_LEASE, and a filesystem that supports leases (some network filesystems
 * do not). Where no lease is granted, writer_scan.h and writer_events.h find the writers that are
 * visible. Thread: any. */
#include <stdbool.h>

/* Takes the lease through fd, which must be open for reading only; closing fd releases it. Returns
 * 0: no writer; -EBUSY: a process has the file open for writing; -EPERM: the file of another user
 * and no CAP_LEASE; -ENOTSUP: the filesystem has no leases. */
int pb_writers_none(int fd);
/* Call after pb_writers_none returned 0: returns true if no process has tried to open the file for
 * writing since. */
bool pb_writers_still_none(int fd);
/* Does the same as pb_writers_none, but where no lease is granted /proc is searched: -EBUSY also
 * for a writer found there; -EPERM and -ENOTSUP: no writer was found, but there may be one. */
int pb_writers_look(int fd);
/* Finds the result of pb_writers_none for files of other users in the directory: 0, -EPERM or
 * -ENOTSUP; 0 also if it cannot be tried there. Makes an unnamed file for a moment. */
int pb_writers_probe(const char *directory);
/* One line about a result of pb_writers_probe or pb_writers_none. Static. */
const char *pb_writers_word(int rc);
/* Programs started from now on do not inherit CAP_LEASE. */
void pb_writers_keep_capability_here(void);
#endif
