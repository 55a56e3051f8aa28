/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SOURCE_FILES_H
#define PB_SOURCE_FILES_H
/* The files that a pipeline reads beside the scene: input.sources. Thread: one at a time. */
#include "config/config.h"
#include "pipeline/raster/raster.h"

/* Path of a source for a scene of that name; PATH_MAX bytes. config.value when it is too long. */
int pb_source_path(const struct pb_config *config, const struct pb_source_config *source,
                   const char *scene, char *out_path, struct pb_err *err);
/* Opens the descriptors of all sources of a pipeline, for a process that loses the right to open
 * files: pb_raster_open() takes them from then on, by path. What cannot be opened is told by it; a
 * file that is a symbolic link is not. */
void pb_source_files_hand(const struct pb_config *config, const struct pb_pipeline_config *pipeline,
                          const char *scene);
/* Where the grid of `other` lies on that of `scene`: parallel axes in one coordinate system.
 * Differences below a millionth of a pixel, over the whole image, are none. */
bool pb_source_place(const struct pb_raster *scene, const struct pb_raster *other,
                     struct pb_map *out_map);
#endif
