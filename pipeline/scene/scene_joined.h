/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_JOINED_H
#define PB_SCENE_JOINED_H
/* A scene spread over several folders: the new delivery in its own folder and the archived files
 * of its earlier jobs. The walk of its folder gets the entries of the others. If two entries
 * have one path, the one in the scene's own folder counts, then the one in the first listed
 * folder, which is newer. One thread. */
#include "pipeline/scene/scene_walk.h"

#include <stdint.h>

/* State of a file of a joined folder when its job ended. */
struct pb_scene_joined_file {
    size_t folder;        /* index in pb_scene_joined.folder */
    const char *path;     /* inside the folder */
    const char *facts;    /* text of pb_scene_joined_facts */
    const char *checksum; /* text of pipeline/io/checksum.h; NULL = unknown */
};

struct pb_scene_joined {
    const char *const *folder; /* folders whose files join; a missing folder has no files */
    size_t n_folders;
    const char *const *file; /* names that must be in one of them, or in the scene's own folder */
    size_t n_files;
    const char *by; /* job that combines them, for messages */
    /* Delivered files, by folder. Other files of a folder that is listed here are ignored. */
    const struct pb_scene_joined_file *came;
    size_t n_came;
};

/* Writes "size mtime ctime" of a file, times in nanoseconds. */
#define PB_SCENE_FACTS_BYTES 72
void pb_scene_joined_facts(int64_t bytes, int64_t mtime_ns, int64_t ctime_ns,
                           char out[PB_SCENE_FACTS_BYTES]);

/* Adds the entries to a walk of the scene's folder, in the order of their paths. input.gone: a
 * required file is not found, or its content was changed since its job ended; else an error of
 * pb_scene_walk_open. A file with changed times is compared by its checksum, if known, else by
 * size and mtime. */
int pb_scene_joined_add(const struct pb_scene_joined *joined, const char *folder,
                        struct pb_scene_walk *walk, struct pb_err *err);
/* Returns the path of a file inside the folder, or inside a joined one. */
const char *pb_scene_joined_inner(const struct pb_scene_walk *walk, const char *folder,
                                  const char *path);
#endif
