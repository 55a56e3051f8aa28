/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITER_SCAN_H
#define PB_WRITER_SCAN_H
/* Finds a process that has a file open for writing, from /proc: for files without a lease. It
 * covers the processes of this user, with CAP_SYS_PTRACE those of all users, on this machine;
 * mappings of closed files are not found. Thread: any. */

/* Searches the descriptors of all other processes for the file of the open fd. Returns the id of a
 * process that writes it; 0 if no process does; -EPERM if no process that can be examined does,
 * but others cannot be examined; another negative errno if /proc cannot be read. */
int pb_writer_scan(int fd);
#endif
