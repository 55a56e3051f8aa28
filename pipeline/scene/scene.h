/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_H
#define PB_SCENE_H
/* The opened files of one scene: one file with its metadata and sidecars, or the files of a folder,
 * of a set or of an archive. The process that has the permissions opens them; a process that it
 * forks registers them (pb_scene_hand) and decodes them through their descriptors. One thread per
 * object. */
#include "pipeline/scene/manifest.h"
#include "pipeline/scene/sidecars.h"
#include "pipeline/scene/scene_files.h"

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
/* How to open the files at the path of a scene. */
struct pb_scene_opening {
    const struct pb_pipeline_config *pipeline;
    const char *name; /* name of the scene, for {scene} */
    int64_t reader;   /* user who must have permission (scene_walk.h); -1: no check */
    const struct pb_scene_manifest *manifest; /* files of the scene; NULL = unknown */
    /* job whose scene the set joins (scene_walk.h); NULL: it joins no scene */
    const char *joins;
};
/* Opens the files of an initialised scene. If the pipeline takes folders: those of a folder; those
 * of the scene that `joins` names too; if nothing is at the path, the loose files of the manifest;
 * else the archive alone (scene_archive.h opens its members).
 * If not: the file, its metadata and its sidecars. On failure *err is input.no_pipeline for a file
 * that is no archive, input.changed for another folder than the submitted one, or an error of
 * scene_files.h, sidecars.h or pb_raster_file_open. *scene needs close in any case. */
int pb_scene_open(struct pb_scene *scene, const struct pb_scene_opening *how, struct pb_err *err);
/* Returns NULL if the scene is one file. */
const struct pb_scene_files *pb_scene_several(const struct pb_scene *scene);
const struct pb_sidecars *pb_scene_sidecars(const struct pb_scene *scene);
/* Registers the open files: pb_raster_open() uses them by their paths from then on. Borrowed until
 * the next call. NULL removes all. */
void pb_scene_hand(const struct pb_scene *scene);
/* Copies the open descriptors to out (PB_SCENE_FDS_MAX); returns the count. */
size_t pb_scene_fds(const struct pb_scene *scene, int *out);
#endif
