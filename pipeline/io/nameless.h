/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NAMELESS_H
#define PB_NAMELESS_H
/* File without a name, for bytes that no other process may find: it disappears when its last
 * descriptor is closed, however the process ends. Made with O_TMPFILE if the file system has it,
 * else unlinked at once. Thread: any. */

/* Returns a descriptor to read and write, or a negative errno. */
int pb_nameless_open(const char *directory);
/* Removes files that a process made in the directory but could not unlink, because the file
 * system has no O_TMPFILE: plain ones with one link, of that name's form, of this user. Returns
 * their count. Call only while no process makes others there. */
int pb_nameless_sweep(const char *directory);
#endif
