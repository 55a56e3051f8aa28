/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_FILES_H
#define PB_SCENE_FILES_H
/* The files of a scene that is a folder: which one each band of input.files is, found by walking
 * the folder once, and opened at that moment. Nothing outside the folder is ever opened: no
 * symbolic link is followed, no pattern leads out. What is opened is what the outputs need; what
 * belongs to a complete scene is looked for as well. The process that opens is the one with the
 * rights to; the one that decodes gets descriptors (pb_scene_files_hand). One thread an object. */
#include "config/config.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/scene/metadata_files.h"

#include <stdint.h>

/* Of the folder: more is no scene. */
#define PB_SCENE_ENTRIES_MAX 20000
#define PB_SCENE_DEPTH_MAX   8
#define PB_SCENE_FILES_MAX   (2 * PB_FILES_MAX + PB_SPARE_FILES_MAX)
#define PB_INPUT_NAMES_MAX   (PB_SCENE_FILES_MAX + PB_METADATA_OPEN_MAX + 1)
#define PB_SCENE_FDS_MAX     (PB_INPUT_NAMES_MAX + PB_SIDECARS_MAX)

struct pb_sidecars;

struct pb_scene_files {
    char *folder;    /* as given, without slashes at the end; NULL = none is open */
    char scene[256]; /* for {scene} in patterns */
    char **joined;   /* folders whose files are the scene's as well (scene_joined.h) */
    size_t n_joined;
    size_t n; /* file[0] has the grid, file[i + 1] is input.sources[i] */
    /* fd -1: not opened, as no output needs it, or it is none of the scene's. path: the folder's
     * and the path inside it; NULL = none. */
    struct pb_raster_file file[PB_SCENE_FILES_MAX];
    size_t n_spare; /* behind those: that are looked at to choose (input.order) */
    struct pb_metadata_files metadata; /* of input.metadata */
    struct pb_raster_file list;        /* of input.list; fd -1: there is none */
    struct pb_sidecars *sidecars;      /* of these files; NULL = not looked for */
    size_t n_left_out;                 /* counted files that no entry of input.files reaches */
    char left_out[160];                /* their names */
    uint64_t bytes;                    /* of the opened ones together */
    int64_t mtime_ns;                  /* of the youngest of them */
    /* Of a scene that is an archive: members of it, how many of the opened ones had to be unpacked,
     * and their bytes. n_members 0 = it is a folder. */
    size_t n_members, n_unpacked;
    uint64_t unpacked_bytes;
};

/* The scene's name: the folder's, without a .SAFE at its end. */
void pb_scene_files_name(const char *folder, char *out, size_t bytes);

/* Finds and opens. scene: for {scene} in patterns. reader: see scene_walk.h. On failure *err names
 * the folder and
 *   input.incomplete  a file is missing: which band, and what was looked for
 *   input.ambiguous   two files fit one band
 *   input.link        a symbolic link lies where a file is looked for
 *   input.limit       the folder has too many entries, or too deep ones
 *   input.missing     the folder cannot be opened
 * or what pb_raster_file_fail says. *out needs close in any case. */
int pb_scene_files_open(const struct pb_pipeline_config *pipeline, const char *folder,
                        const char *scene, int64_t reader, struct pb_err *err,
                        struct pb_scene_files *out);
/* The same for a scene of which other folders have files, too. input.gone: one that is wanted is in
 * none of them. */
struct pb_scene_joined;
int pb_scene_files_open_joined(const struct pb_pipeline_config *pipeline, const char *folder,
                               const char *scene, const struct pb_scene_joined *joined,
                               struct pb_err *err, struct pb_scene_files *out);
/* The same for a scene of loose files (input.group) that lie in a folder among others. path: the
 * folder, and the scene as input.by has it in place of a file's name. names: of the n files where
 * their metadata told the scene; NULL: their names tell it. */
int pb_scene_files_open_group(const struct pb_pipeline_config *pipeline, const char *path,
                              const char *const *names, size_t n, struct pb_err *err,
                              struct pb_scene_files *out);
/* Whether the walked folder has the files of a complete scene, the optional ones among them,
 * without opening one: 0, or the errors of open. */
struct pb_scene_walk;
int pb_scene_files_check(const struct pb_pipeline_config *pipeline,
                         const struct pb_scene_walk *walk, const char *folder, const char *scene,
                         struct pb_err *err);
void pb_scene_files_close(struct pb_scene_files *files); /* a zeroed one is fine */
/* For who opens them otherwise (scene_archive.c): an object without open files, and at the end the
 * sums over those that are open. */
int pb_scene_files_begin(const struct pb_pipeline_config *pipeline, const char *folder,
                         struct pb_err *err, struct pb_scene_files *out);
void pb_scene_files_count(struct pb_scene_files *files);

/* pb_raster_open() takes the files by their paths from then on. Borrowed until the next call. NULL:
 * none is there any more. */
void pb_scene_files_hand(const struct pb_scene_files *files);
/* The descriptors that are open, into out (PB_SCENE_FDS_MAX); how
 * many. */
size_t pb_scene_files_fds(const struct pb_scene_files *files, int *out);
/* The paths of the opened files inside the folder, into out (PB_INPUT_NAMES_MAX), a file once;
 * how many. */
size_t pb_scene_files_names(const struct pb_scene_files *files, const char **out);
/* The path inside the folder. */
const char *pb_scene_files_inner(const struct pb_scene_files *files, const char *path);
/* Puts the path inside the folder into the message of an error about one of the files, whose place
 * becomes the folder. Another error stays as it is. err may be NULL. */
void pb_scene_files_blame(const struct pb_scene_files *files, struct pb_err *err);
#endif
