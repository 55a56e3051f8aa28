/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PATH_H
#define PB_PATH_H
/* Directories. Functions with an int result return 0 or a negative errno. Thread: any. */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>

/* Gets the directory of the path: "." if it names none. */
void pb_path_parent(const char *path, char out[PATH_MAX]);
/* Returns the part of the path below the directory; NULL: the path is not below it. */
const char *pb_path_below(const char *path, const char *directory);

/* mkdir -p. New directories are on disk on return. */
int pb_path_make(const char *path);
/* Opens the sub-directory `name` of an open directory, unless it is a link or a mount point
 * (-EXDEV). Returns its descriptor, or a negative errno. directory: AT_FDCWD accepts any mount. */
int pb_path_open_at(int directory, const char *name);
/* Streams the entries of an open directory, whose own position is unchanged. The caller closes
 * it with closedir. NULL, with errno: it cannot be read. */
DIR *pb_path_entries(int directory);
/* True for "." and "..", the entries that every directory has. */
bool pb_path_is_dots(const char *name);
/* Syncs a directory's entries. Returns success on file systems that do not support it: there is
 * no stronger guarantee for their renames. */
int pb_path_sync(const char *path);
/* Removes the entry `name` of an open directory and everything below it, as far as possible.
 * Links are removed, not followed; mount points below are preserved, with the directories above
 * them. Returns 0 if it is removed. */
int pb_path_remove_at(int directory, const char *name);
#endif
