/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_SEARCH_H
#define PB_SCENE_SEARCH_H
/* Assigns the files of a scene to the bands of input.files, by their names alone. One thread. */
#include "config/input_values.h"
#include "pipeline/scene/scene_walk.h"

struct pb_pipeline_config;

/* Files to open; NULL = no output needs it, or it is not a file of the scene. Owned by the walk. */
struct pb_scene_found {
    const struct pb_scene_entry *file[PB_FILES_MAX];        /* as in struct pb_scene_files */
    const struct pb_scene_entry *spare[PB_SPARE_FILES_MAX]; /* n_spare: see scene_counted.h */
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
#endif
