/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_JOINED_H
#define PB_SCENE_JOINED_H
/* A scene whose files lie in several folders: those that came last in its own, those of its earlier
 * jobs where these left them. The walk of its folder gets the entries of the others. Of two entries
 * with one path that of the scene's own folder counts, then that of the folder named first: it came
 * later. One thread. */
#include "pipeline/scene/scene_walk.h"

#include <stdint.h>

/* A file of a joined folder as it was when its job ended. */
struct pb_scene_joined_file {
    size_t folder;        /* index in pb_scene_joined.folder */
    const char *path;     /* inside the folder */
    const char *facts;    /* as pb_scene_joined_facts prints them */
    const char *checksum; /* as of pipeline/io/checksum.h; NULL = not known */
};

struct pb_scene_joined {
    const char *const *folder; /* whose files join; one that is not there has none */
    size_t n_folders;
    const char *const *file; /* names that must be in one of them, or in the scene's own folder */
    size_t n_files;
    const char *by; /* the job that made the scene of them, for messages */
    /* The files that came, by folder. A folder that has any here gives no other file. */
    const struct pb_scene_joined_file *came;
    size_t n_came;
};

/* "size mtime ctime" of a file, times in nanoseconds. */
#define PB_SCENE_FACTS_BYTES 72
void pb_scene_joined_facts(int64_t bytes, int64_t mtime_ns, int64_t ctime_ns,
                           char out[PB_SCENE_FACTS_BYTES]);

/* Adds the entries to a walk of the scene's folder, in the order of their paths. input.gone: a
 * wanted file is not found, or its content was changed since its job ended; else what
 * pb_scene_walk_open fails with. A file whose times alone were changed is compared by its checksum,
 * if that is known, else by size and mtime. */
int pb_scene_joined_add(const struct pb_scene_joined *joined, const char *folder,
                        struct pb_scene_walk *walk, struct pb_err *err);
/* The path inside the folder, or inside a joined one, of a file that lies there. */
const char *pb_scene_joined_inner(const struct pb_scene_walk *walk, const char *folder,
                                  const char *path);
#endif
