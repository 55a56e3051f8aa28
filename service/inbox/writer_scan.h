/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITER_SCAN_H
#define PB_WRITER_SCAN_H
/* Who has a file open for writing, as /proc tells: for files of which no lease is given. It shows
 * the processes of this user, with CAP_SYS_PTRACE those of all users, and of this machine; mappings
 * of closed files are not looked for. Thread: any. */

/* Looks through the descriptors of all processes but this one for the file of the open fd. The id
 * of a process that writes; 0: none does; -EPERM: none of those that can be looked at; another
 * negative errno: /proc cannot be read. */
int pb_writer_scan(int fd);
#endif
