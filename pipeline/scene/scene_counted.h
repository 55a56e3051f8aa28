/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_COUNTED_H
#define PB_SCENE_COUNTED_H
/* Files that match one pattern of input.files and are counted (nth): the observations of a
 * place. Only names are used; therefore, if their order depends on metadata (input.order:
 * cloud), they are numbered by name here and renumbered after the metadata is read. One thread. */
#include "pipeline/scene/scene_walk.h"

struct pb_input_config;

/* Lists the entries that match the pattern, without sidecars of others, in input.order; an array
 * of *out_n, which the caller frees. folder: for messages. */
int pb_scene_counted_list(const struct pb_input_config *input, const struct pb_scene_walk *walk,
                          const char *folder, const char *pattern, struct pb_err *err,
                          const struct pb_scene_entry ***out_entries, size_t *out_n);
/* Returns true if a file, by its path inside the scene, is the metadata of another one according
 * to a pattern that begins with *: a pattern without a slash compares their base names. */
bool pb_scene_counted_is_metadata(const char *pattern, const char *scene, const char *file,
                                  const char *path);
#endif
