/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PATH_H
#define PB_PATH_H
/* Directories. What returns an int returns 0 or a negative errno. Thread: any. */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>

/* The directory that the path is in: "." when it names none. */
void pb_path_parent(const char *path, char out[PATH_MAX]);
/* The part of the path behind the directory that it begins with; NULL: it lies elsewhere. */
const char *pb_path_below(const char *path, const char *directory);

/* mkdir -p. Directories that are made are on disk when it returns. */
int pb_path_make(const char *path);
/* Opens the sub-directory `name` of an open directory, unless it is a link or something is mounted
 * there (-EXDEV): its descriptor, or a negative errno. directory: AT_FDCWD takes any mount. */
int pb_path_open_at(int directory, const char *name);
/* Streams the entries of an open directory, which keeps its own position. The caller closes it with
 * closedir. NULL, with errno: it cannot be read. */
DIR *pb_path_entries(int directory);
/* True for "." and "..", the entries that every directory has. */
bool pb_path_is_dots(const char *name);
/* Puts a directory's entries on disk. Filesystems that cannot do that count as done: their renames
 * are as durable as they get. */
int pb_path_sync(const char *path);
/* Removes the entry `name` of an open directory and what is below it, as far as it can. Links
 * are removed, not followed; mount points below stay, with the directories above them. 0: it is
 * gone. */
int pb_path_remove_at(int directory, const char *name);
#endif
