/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_H
#define PB_SCENE_H
/* The opened files of one scene: one file with its metadata and sidecars, or the files of a folder,
 * of a set or of an archive. The process that has the permissions opens them; a process that it
 * forks registers them (pb_scene_hand) and decodes them through their descriptors. One thread per
 * object. */
#include "pipeline/scene/metadata_files.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/sidecars.h"

/* At most one of file and files is open. */
struct pb_scene {
    char *path;                 /* path of the file or folder; for a set: its folder and scene */
    struct pb_raster_file file; /* the only file; fd -1: not open, or `files` */
    struct pb_metadata_files metadata; /* next to `file`; n 0: not open */
    struct pb_sidecars sidecars;       /* next to `file` */
    struct pb_scene_files files;       /* folder NULL: not open, or `file` */
};

/* Makes a scene without open files. path: copied. 0 or -ENOMEM. */
int pb_scene_init(struct pb_scene *scene, const char *path);
/* Makes a scene for a call, of a path that stays the caller's; it needs no close. A run opens the
 * file of such a scene itself. */
struct pb_scene pb_scene_at(const char *path);
void pb_scene_close(struct pb_scene *scene); /* zero bytes are fine */
/* Returns NULL if the scene is one file. */
const struct pb_scene_files *pb_scene_several(const struct pb_scene *scene);
const struct pb_sidecars *pb_scene_sidecars(const struct pb_scene *scene);
/* Registers the open files: pb_raster_open() uses them by their paths from then on. Borrowed until
 * the next call. NULL removes all. */
void pb_scene_hand(const struct pb_scene *scene);
/* Copies the open descriptors to out (PB_SCENE_FDS_MAX); returns the count. */
size_t pb_scene_fds(const struct pb_scene *scene, int *out);
#endif
