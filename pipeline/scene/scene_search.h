/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_SEARCH_H
#define PB_SCENE_SEARCH_H
/* Files by their names alone: which file belongs to another one (sidecars, which have its name and
 * an ending: x.tif.msk, x.tfw, x_RPC.TXT; and its metadata, input.metadata), and which file of a
 * scene is that of each band of input.files. Base names; upper and lower case are equal. No I/O.
 * One thread. */
#include "config/input_values.h"
#include "pipeline/scene/scene_walk.h"

#include <stdbool.h>
#include <stddef.h>

struct pb_pipeline_config;

/* Endings that are not a scene in any pipeline: files that GDAL and similar programs read or
 * write next to a file. NULL after the last one. */
const char *pb_sidecar_known(size_t i);
/* Returns true if `name` is `main` and the ending, or `main` without its suffix and the ending. */
bool pb_sidecar_is_of(const char *main, const char *ending, const char *name);
/* The same with one of the n endings or, `known`, with a known one. */
bool pb_sidecar_is_any_of(const char *main, char *const *endings, size_t n, bool known,
                          const char *name);
/* Count of bytes before the ending of a name that is one of main's sidecars: those of main, or
 * of main without its suffix. */
size_t pb_sidecar_shared(const char *main, const char *name);
/* Count of bytes of the name before the ending; 0: it has another one, or nothing before it. */
size_t pb_sidecar_stem(const char *name, const char *ending);

/* Returns true if `name` is the metadata of the file `main` by the pattern: it matches with the
 * scene's name for {scene}, and the text of a leading * is a prefix of main's name that ends at
 * the end of a word, so that each of two scenes has its own. scene NULL: returns true for
 * metadata of any file. */
bool pb_metadata_is_of(const char *pattern, const char *scene, const char *main, const char *name);

/* Files to open; NULL = no output needs it, or it is not a file of the scene. Owned by the walk. */
struct pb_scene_found {
    const struct pb_scene_entry *file[PB_FILES_MAX];        /* as in struct pb_scene_files */
    const struct pb_scene_entry *spare[PB_SPARE_FILES_MAX]; /* counted files to choose from */
    const struct pb_scene_entry *metadata[PB_METADATA_OPEN_MAX];
    size_t n_spare, n_metadata;
    const struct pb_scene_entry *list; /* file of input.list */
    size_t n_absent;                   /* optional files of a complete scene that are absent */
    size_t n_left_out;  /* counted files beyond those that input.files refers to (nth) */
    char left_out[160]; /* their names, or the first ones */
};

/* Makes a pattern of the configuration with the scene's name, taken literally, for {scene};
 * PATH_MAX bytes. config.value if it is too long. */
int pb_scene_search_pattern(const char *pattern, const char *scene, char *out, struct pb_err *err);
/* folder: for messages. scene: for {scene}. input.incomplete: the band and its pattern, or that
 * different numbers of files match the counted patterns (nth); input.ambiguous: two files match
 * one band. *out is zeroed first. */
int pb_scene_search(const struct pb_pipeline_config *pipeline, const struct pb_scene_walk *walk,
                    const char *folder, const char *scene, struct pb_err *err,
                    struct pb_scene_found *out);

/* Returns true if a file, by its path inside the scene, is the metadata of another one according
 * to a pattern that begins with *: a pattern without a slash compares their base names. */
bool pb_scene_counted_is_metadata(const char *pattern, const char *scene, const char *file,
                                  const char *path);
#endif
