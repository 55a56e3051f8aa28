/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILES_H
#define PB_FILES_H
/* File operations that must survive a power failure: a change that a function reports as done is
 * on the disk. Thread: any. Messages are written to *err (which may be NULL) and name the remedy.
 */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_FILES_PATH_BYTES 4096

/* Writes "a/b" to out; -ENAMETOOLONG. */
int pb_files_join(char out[PB_FILES_PATH_BYTES], const char *directory, const char *name);

/* Checks that this process may list, write and search the directory; `what` is its name in
 * messages. */
int pb_files_check_directory(const char *path, const char *what, struct pb_err *err);
/* Creates a directory and its parents (mode 0755 less umask); this process must be able to write
 * and search an existing one. `what` is its name in messages ("inbox"). */
int pb_files_make_directory(const char *path, const char *what, struct pb_err *err);
/* Opens the directory `path` below the root, which may be "", without following a link below it.
 * Returns its descriptor, or a negative errno. */
int pb_files_open_below(const char *root, const char *path);
/* Returns true if only this machine changes file systems of that type (f_type of statfs): inotify
 * reports every change, and file times are those of this machine's clock. Unknown types count as
 * remote, because an event that is missing would let a scene be taken without its late files; a
 * needless listing costs only time. */
bool pb_files_is_local_type(uint32_t type);
enum pb_files_rename { PB_FILES_ANY_WAY, PB_FILES_LINK_ONLY };
/* Renames a file to a name that must be free; -EEXIST if it is not. On filesystems whose rename
 * cannot check that (FUSE, NFS: EINVAL) it uses link and unlink; on those without links it first
 * makes an empty file that reserves the name, unless LINK_ONLY: for directories in which others
 * may replace that file in between. Returns 0 or a negative errno, and sets errno. */
int pb_files_rename_new(const char *from, const char *to, enum pb_files_rename how);
/* Moves a file into a directory of the same filesystem as name, or name.1, name.2, ... if the name
 * exists; never overwrites. Both directories are synced. out_path gets the new path. */
int pb_files_move(const char *from, const char *directory, const char *name,
                  char out_path[PB_FILES_PATH_BYTES], struct pb_err *err);
/* Returns 0 if at least `bytes` bytes are free below the directory (0: any), for users who are not
 * root; otherwise service.space. */
int pb_files_check_space(const char *directory, uint64_t bytes, struct pb_err *err);
/* Removes a file, or a folder with its content; no link is followed. Returns 0 or a negative
 * errno. */
int pb_files_remove(const char *path);
/* Writes a whole file under a temporary name, syncs and renames it (over an old one). */
int pb_files_write(const char *path, const char *text, size_t bytes, struct pb_err *err);
#endif
