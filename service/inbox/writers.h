/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITERS_H
#define PB_WRITERS_H
/* Whether somebody has a file open for writing. The kernel grants a read lease (fcntl(2)) only when
 * nobody has, shared writable mappings included; while it is held, whoever opens the file for
 * writing waits until it is given back. It needs a file of our own or CAP_LEASE, and a filesystem
 * that has leases (some network filesystems have none). Where none is given, writer_scan.h and
 * writer_events.h tell of those writers that can be seen. Thread: any. */
#include <stdbool.h>

/* Takes the lease through fd, which must be open for reading only; closing fd gives it back.
 * 0: nobody writes; -EBUSY: somebody has it open for writing; -EPERM: not our file and no
 * CAP_LEASE; -ENOTSUP: the filesystem does not tell. */
int pb_writers_none(int fd);
/* After pb_writers_none gave 0: whether nobody asked to open the file for writing since. */
bool pb_writers_still_none(int fd);
/* The same, but where no lease is given /proc is looked through: -EBUSY also for a writer found
 * there; -EPERM and -ENOTSUP: none was found, but it cannot be known. */
int pb_writers_look(int fd);
/* What can be told about the files of others in the directory: 0, -EPERM or -ENOTSUP as above; 0
 * as well when it cannot be tried out there. Makes an unnamed file for a moment. */
int pb_writers_probe(const char *directory);
/* One line about a result of pb_writers_probe or pb_writers_none. Static. */
const char *pb_writers_word(int rc);
/* Programs started from now on do not inherit CAP_LEASE. */
void pb_writers_keep_capability_here(void);
#endif
