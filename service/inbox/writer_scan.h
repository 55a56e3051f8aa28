/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITER_SCAN_H
#define PB_WRITER_SCAN_H
/* Which process has a file open for writing, from /proc: for files without a lease. It covers the
 * processes of this user, with CAP_SYS_PTRACE those of all users, on this machine; mappings of
 * closed files are not found. Thread: any. */

/* Looks through the descriptors of all processes but this one for the file of the open fd. The id
 * of a process that writes; 0: none does; -EPERM: none of those that can be examined; another
 * negative errno: /proc cannot be read. */
int pb_writer_scan(int fd);
#endif
