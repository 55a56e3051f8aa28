/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_JOINED_H
#define PB_SCENE_JOINED_H
/* A scene spread over several folders: the new delivery in its own folder and the archived files
 * of its earlier jobs. The walk of its folder gets the entries of the others. If two entries
 * have one path, the one in the scene's own folder counts, then the one in the first listed
 * folder, which is newer. One thread. */
#include "pipeline/scene/manifest.h"
#include "pipeline/scene/scene_walk.h"

/* Borrowed. The first root of the manifest is the scene's own folder. The others are the folders
 * whose files join; a missing folder has no files. The files of the manifest in these, by their
 * paths, must be in one of the folders. A root with files of known sizes lists all of its files: it
 * has their state when their job ended, and other files in that folder are ignored. */
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
/* Returns the path of a file inside the folder, or inside a joined one. */
const char *pb_scene_joined_inner(const struct pb_scene_walk *walk, const char *folder,
                                  const char *path);
#endif
