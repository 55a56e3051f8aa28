/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITERS_H
#define PB_WRITERS_H
/* Whether a process has a file open for writing. The kernel grants a read lease (fcntl(2)) only
 * when none has, shared writable mappings included; while it is held, a process that opens the file
 * for writing waits until it is given back. It needs a file of our own or CAP_LEASE, and a
 * filesystem that has leases (some network filesystems have none). Where none is given,
 * writer_scan.h and writer_events.h find the writers that are visible. Thread: any. */
#include <stdbool.h>

/* Takes the lease through fd, which must be open for reading only; closing fd gives it back. 0: no
 * writer; -EBUSY: a process has it open for writing; -EPERM: the file of another user and no
 * CAP_LEASE; -ENOTSUP: the filesystem has no leases. */
int pb_writers_none(int fd);
/* After pb_writers_none gave 0: whether no process tried to open the file for writing since. */
bool pb_writers_still_none(int fd);
/* The same, but where no lease is given /proc is searched: -EBUSY also for a writer found there;
 * -EPERM and -ENOTSUP: none was found, but it cannot be known. */
int pb_writers_look(int fd);
/* Which of these results files of other users in the directory will have: 0, -EPERM or -ENOTSUP; 0
 * also when it cannot be tried there. Makes an unnamed file for a moment. */
int pb_writers_probe(const char *directory);
/* One line about a result of pb_writers_probe or pb_writers_none. Static. */
const char *pb_writers_word(int rc);
/* Programs started from now on do not inherit CAP_LEASE. */
void pb_writers_keep_capability_here(void);
#endif
