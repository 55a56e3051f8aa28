/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_FILES_H
#define PB_SCENE_FILES_H
/* Files of a scene that is a folder: assigns a file to each band of input.files by walking the
 * folder once, and opens it in that walk. Nothing outside the folder is ever opened: symbolic
 * links are not followed, and patterns cannot leave the folder. Only the files that the outputs
 * need are opened; the other files of a complete scene are only searched. The opening process
 * has the permissions; the decoding process gets descriptors (pb_scene_files_hand). One thread
 * per object. */
#include "config/input_values.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/scene/sidecars.h"

#include <stdint.h>

struct pb_pipeline_config;
struct pb_sidecars;
struct pb_scene_entry;
struct pb_scene_found;
struct pb_scene_joined;
struct pb_scene_manifest;
struct pb_scene_walk;

/* Limits of the folder: a larger one is not a scene. */
#define PB_SCENE_ENTRIES_MAX 20000
#define PB_SCENE_DEPTH_MAX   8
#define PB_SCENE_FILES_MAX   (2 * PB_FILES_MAX + PB_SPARE_FILES_MAX)
#define PB_INPUT_NAMES_MAX   (PB_SCENE_FILES_MAX + PB_METADATA_OPEN_MAX + 1)
#define PB_SCENE_FDS_MAX     (PB_INPUT_NAMES_MAX + PB_SIDECARS_MAX)

struct pb_scene_files {
    char *folder;    /* as given, without slashes at the end; NULL = not open */
    char scene[256]; /* for {scene} in patterns */
    char **joined;   /* folders whose files belong to the scene too (scene_walk.h) */
    size_t n_joined;
    size_t n; /* file[0] has the grid, file[i + 1] is input.sources[i] */
    /* fd -1: not opened, because no output needs it, or it is not a file of the scene. path: the
     * folder's and the path inside it; NULL = absent. */
    struct pb_raster_file file[PB_SCENE_FILES_MAX];
    size_t n_spare; /* count of files after those that are read to choose (input.order) */
    struct pb_metadata_files metadata; /* files of input.metadata */
    struct pb_raster_file list;        /* file of input.list; fd -1: absent */
    struct pb_sidecars *sidecars;      /* sidecars of these files; NULL = not searched */
    size_t n_left_out;                 /* counted files that no entry of input.files uses */
    char left_out[160];                /* their names */
    uint64_t bytes;                    /* sum of the opened files */
    int64_t mtime_ns;                  /* time of the youngest opened file */
    /* For a scene that is an archive: count of its members, count of opened ones that were
     * unpacked, and their bytes. n_members 0 = a folder. */
    size_t n_members, n_unpacked;
    uint64_t unpacked_bytes;
};

/* Name of the scene: the folder's, without a final .SAFE. */
void pb_scene_files_name(const char *folder, char *out, size_t bytes);

/* Finds and opens the files. scene: for {scene} in patterns. reader: see scene_walk.h. On
 * failure *err names the folder and
 *   input.incomplete  a file is missing: its band, and the pattern
 *   input.ambiguous   two files match one band
 *   input.link        the path of a file is a symbolic link
 *   input.limit       the folder has too many entries, or too deep ones
 *   input.missing     the folder cannot be opened
 * or an error of pb_raster_file_fail. *out needs close in any case. */
int pb_scene_files_open(const struct pb_pipeline_config *pipeline, const char *folder,
                        const char *scene, int64_t reader, struct pb_err *err,
                        struct pb_scene_files *out);
/* The same for a scene with files in other folders too. input.gone: a required one is in none of
 * them. */
int pb_scene_files_open_joined(const struct pb_pipeline_config *pipeline, const char *folder,
                               const char *scene, const struct pb_scene_joined *joined,
                               struct pb_err *err, struct pb_scene_files *out);
/* The same for a scene of loose files (input.group) in a folder with other files: the files of the
 * manifest in that folder. path: the folder, and the scene in the form that input.by has instead
 * of a file's name. */
int pb_scene_files_open_group(const struct pb_pipeline_config *pipeline, const char *path,
                              const struct pb_scene_manifest *manifest, struct pb_err *err,
                              struct pb_scene_files *out);
/* Checks that the walked folder has the files of a complete scene, including the optional ones,
 * without opening them. Returns 0, or the errors of open. */
int pb_scene_files_check(const struct pb_pipeline_config *pipeline,
                         const struct pb_scene_walk *walk, const char *folder, const char *scene,
                         struct pb_err *err);
void pb_scene_files_close(struct pb_scene_files *files); /* a zeroed one is fine */
/* For other ways of opening (scene_archive.c): begin makes an object without open files, the
 * other call computes the sums over the open ones. */
int pb_scene_files_begin(const struct pb_pipeline_config *pipeline, const char *folder,
                         struct pb_err *err, struct pb_scene_files *out);
void pb_scene_files_count(struct pb_scene_files *files);
/* Entry of a walk, and the place in a scene where it is to be opened. */
struct pb_scene_wanted {
    const struct pb_scene_entry *entry;
    struct pb_raster_file *to; /* not open */
};
/* Reserves places in *out for the files that were found and for their sidecars in the walk (NULL:
 * the caller searches them), and lists both, PB_SCENE_FDS_MAX at most. 0, memory or input.limit. */
int pb_scene_files_want(const struct pb_pipeline_config *pipeline, const struct pb_scene_walk *walk,
                        const struct pb_scene_found *found, struct pb_err *err,
                        struct pb_scene_files *out, struct pb_scene_wanted *wanted, size_t *out_n);

/* Registers the files: pb_raster_open() uses them by their paths from then on. Borrowed until
 * the next call. NULL removes all. */
void pb_scene_files_hand(const struct pb_scene_files *files);
/* Copies the open descriptors to out (PB_SCENE_FDS_MAX); returns the count. */
size_t pb_scene_files_fds(const struct pb_scene_files *files, int *out);
/* Lists the paths of the opened files inside the folder in out (PB_INPUT_NAMES_MAX), each file
 * once; returns the count. */
size_t pb_scene_files_names(const struct pb_scene_files *files, const char **out);
/* Returns the path inside the folder. */
const char *pb_scene_files_inner(const struct pb_scene_files *files, const char *path);
/* Returns true if the folder, or a joined one, has a file of that path inside it and that size,
 * opened or not; false for an archive. */
bool pb_scene_files_has(const struct pb_scene_files *files, const char *inner, uint64_t bytes);
/* Adds the path inside the folder to the message of an error about one of the files, and sets
 * its place to the folder. Other errors are unchanged. err may be NULL. */
void pb_scene_files_blame(const struct pb_scene_files *files, struct pb_err *err);

/* File that lists the counted files of a scene in their order (input.list): in each line the name
 * of a file, or its path inside the scene, optionally after ./. Empty lines and lines that begin
 * with # are ignored. */
#define PB_SCENE_LIST_BYTES_MAX (1024 * 1024)
#define PB_SCENE_LIST_MAX       4096

struct pb_scene_list_line {
    const char *name;
    int line; /* line of the file, from 1 */
};

struct pb_scene_list {
    char *text; /* text that contains the names */
    struct pb_scene_list_line *one;
    size_t n;
};

/* Reads an open file. input.metadata_invalid: it is too large, is not text, or lists nothing;
 * input.io, memory. *out needs fini in any case. */
int pb_scene_list_read(struct pb_raster_file *file, struct pb_err *err, struct pb_scene_list *out);
void pb_scene_list_fini(struct pb_scene_list *list);
/* Returns true if the line refers to the file of that path inside the scene. */
bool pb_scene_list_means(const struct pb_scene_list_line *line, const char *path);
#endif
