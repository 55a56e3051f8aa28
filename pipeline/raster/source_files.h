/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SOURCE_FILES_H
#define PB_SOURCE_FILES_H
/* Files that a pipeline reads in addition to the scene: input.sources. Thread: one at a time. */
#include "config/input_values.h"
#include "pipeline/raster/raster.h"

struct pb_config;
struct pb_err;
struct pb_pipeline_config;
struct pb_source_config;

/* Path of a source for a scene of that name; PATH_MAX bytes. Returns config.value if it is too
 * long. */
int pb_source_path(const struct pb_config *config, const struct pb_source_config *source,
                   const char *scene, char *out_path, struct pb_err *err);
/* Descriptors of the sources of a pipeline; a negative errno for a source that could not be
 * opened. */
struct pb_source_files {
    int fd[PB_FILES_MAX - 1];
    size_t n;
};

/* Opens them for a process that has no permission to open files. Symbolic links are not
 * followed. */
void pb_source_files_open(const struct pb_config *config, const struct pb_pipeline_config *pipeline,
                          const char *scene, struct pb_source_files *out);
/* Registers the descriptors: pb_raster_open() uses them by path from then on and reports the
 * sources that could not be opened. They are borrowed until the next call. pipeline == NULL:
 * removes all. */
void pb_source_files_hand(const struct pb_config *config, const struct pb_pipeline_config *pipeline,
                          const char *scene, const struct pb_source_files *files);
/* No-op on a zeroed struct. */
void pb_source_files_close(struct pb_source_files *files);
/* Replaces the place of an error about a source's file by the source's name and path in its
 * message, because jobs are identified by their scene. Other errors are unchanged. err may be
 * NULL. */
void pb_source_files_blame(const struct pb_config *config,
                           const struct pb_pipeline_config *pipeline, const char *scene,
                           struct pb_err *err);
/* Position of the grid of `other` in that of `scene`: parallel axes in one coordinate system.
 * Differences below a millionth of a pixel, over the whole image, are ignored. */
bool pb_source_place(const struct pb_raster *scene, const struct pb_raster *other,
                     struct pb_map *out_map);
#endif
