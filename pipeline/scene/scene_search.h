/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_SEARCH_H
#define PB_SCENE_SEARCH_H
/* Which of the files in a scene each band of input.files is, by their names alone. One thread. */
#include "config/config.h"
#include "pipeline/scene/scene_walk.h"

/* What is to be opened; NULL = no output needs it, or it is none of the scene's. Owned by the walk.
 */
struct pb_scene_found {
    const struct pb_scene_entry *file[PB_FILES_MAX];        /* as in struct pb_scene_files */
    const struct pb_scene_entry *spare[PB_SPARE_FILES_MAX]; /* n_spare: see scene_counted.h */
    const struct pb_scene_entry *metadata[PB_METADATA_OPEN_MAX];
    size_t n_spare, n_metadata;
    const struct pb_scene_entry *list; /* of input.list */
    size_t n_absent;    /* optional files that belong to a complete scene and are not there */
    size_t n_left_out;  /* counted files beyond those that input.files counts (nth) */
    char left_out[160]; /* their names, the first ones when there are many */
};

/* A pattern of the configuration with the scene's name for {scene}, whose letters stand for
 * themselves; PATH_MAX bytes. config.value when it is too long. */
int pb_scene_search_pattern(const char *pattern, const char *scene, char *out, struct pb_err *err);
/* folder: for messages. scene: for {scene}. input.incomplete: which band, and what was looked for,
 * or that different numbers of files fit the patterns that are counted (nth);
 * input.ambiguous: two files fit one band. *out is zeroed first. */
int pb_scene_search(const struct pb_pipeline_config *pipeline, const struct pb_scene_walk *walk,
                    const char *folder, const char *scene, struct pb_err *err,
                    struct pb_scene_found *out);
#endif
