/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NAMELESS_H
#define PB_NAMELESS_H
/* A file without a name, for bytes that nobody else is to find: it is gone when its last descriptor
 * is closed, however the process ends. Made with O_TMPFILE where the file system has it, else
 * unlinked at once. Thread: any. */

/* A descriptor to read and write, or a negative errno. */
int pb_nameless_open(const char *directory);
/* Removes files that a process made in the directory and could not unlink any more, where the file
 * system has no O_TMPFILE: plain ones with one name, of that name's form, of this user; how many.
 * Only while nobody makes others there. */
int pb_nameless_sweep(const char *directory);
#endif
