/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_WALK_H
#define PB_SCENE_WALK_H
/* Lists all files below a folder, and opens them without leaving it: each component of a path is
 * opened by its name in the directory before it, and none may be a symbolic link. A scene may be
 * spread over several folders (pb_scene_joined_add). One thread per object. */
#include "config/base/err.h"
#include "pipeline/scene/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_scene_entry {
    char *path;                         /* inside the folder */
    bool is_link;                       /* a symbolic link: never followed */
    uint32_t number;                    /* number in the listing that the walk was made of */
    const struct pb_scene_walk *joined; /* walk of the folder that contains it; NULL = this one */
};

struct pb_scene_walk {
    int fd;       /* descriptor of the folder; -1 = closed */
    char *folder; /* path of a folder that is opened for each file if fd is -1; else NULL */
    /* Folders whose entries were added to this walk (pb_scene_joined_add). */
    struct pb_scene_walk *joined;
    size_t n_joined;
    struct pb_scene_entry *entry;
    size_t n, room;
    /* Sums over all entries of the folder, to detect changes: */
    uint64_t bytes;      /* bytes of the plain files */
    uint64_t digest;     /* hash of paths, sizes, inodes, times and links; not secure */
    int64_t youngest_ns; /* the youngest ctime, including that of the scene's folder */
    size_t n_linked;     /* plain files with several hard links */
};

/* Lists plain files and symbolic links, and walks directories; other kinds are ignored. In the
 * order of their paths. input.missing, input.limit, input.io, memory. *out needs close in any
 * case. */
int pb_scene_walk_open(const char *folder, struct pb_err *err, struct pb_scene_walk *out);
/* Loose files of a scene in a folder with other files: the files of the manifest that are there.
 */
int pb_scene_walk_open_loose(const char *folder, const struct pb_scene_manifest *manifest,
                             struct pb_err *err, struct pb_scene_walk *out);
void pb_scene_walk_close(struct pb_scene_walk *walk);
/* Opens a file for reading; a negative errno; -ELOOP: a component is a link. reader: user id
 * that must have permission to read it, according to owner and other permissions, else -EACCES;
 * -1: no check. */
int pb_scene_walk_open_file(const struct pb_scene_walk *walk, const char *path, int64_t reader);
/* Opens the file of an entry as a raster, or another file, whose path begins with the walked
 * folder. input.link, input.changed (it is gone or is no plain file now), input.missing (no
 * permission), or an error of pb_raster_file_fail. *out, which is closed before, needs close in any
 * case. */
struct pb_raster_file;
int pb_scene_walk_open_raster(const struct pb_scene_walk *walk, const char *folder,
                              const struct pb_scene_entry *entry, int64_t reader,
                              struct pb_err *err, struct pb_raster_file *out);
/* Returns true if the pattern of a configuration matches a path inside the folder: without a
 * slash its last component, else the complete path. */
bool pb_scene_walk_fits(const char *pattern, const char *path);

/* A scene spread over several folders: the new delivery in its own folder and the archived files of
 * its earlier jobs. If two entries have one path, the one in the scene's own folder counts, then
 * the one in the first listed folder, which is newer. Borrowed. The first root of the manifest is
 * the scene's own folder. The others are the folders whose files join; a missing folder has no
 * files. The files of the manifest in these, by their paths, must be in one of the folders. A root
 * with files of known sizes lists all of its files: it has their state when their job ended, and
 * other files in that folder are ignored. */
struct pb_scene_joined {
    const struct pb_scene_manifest *manifest;
    const char *by; /* job that combines them, for messages */
};

/* Adds the entries to a walk of the scene's folder, in the order of their paths. input.gone: the
 * manifest has no root to join, or a required file is not found, or its content was changed since
 * its job ended; else an error of pb_scene_walk_open. A file with changed times is compared by its
 * checksum, if known, else by size and mtime. */
int pb_scene_joined_add(const struct pb_scene_joined *joined, const char *folder,
                        struct pb_scene_walk *walk, struct pb_err *err);
#endif
