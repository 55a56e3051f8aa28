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
/* Descriptors of the sources of a pipeline; a negative errno of one that could not be opened. */
struct pb_source_files {
    int fd[PB_FILES_MAX - 1];
    size_t n;
};

/* Opens them for a process that has no right to open files. A symbolic link is not opened. */
void pb_source_files_open(const struct pb_config *config, const struct pb_pipeline_config *pipeline,
                          const char *scene, struct pb_source_files *out);
/* pb_raster_open() takes them by path from then on, and tells what could not be opened. The
 * descriptors are borrowed until the next call. No pipeline (NULL): no source has one any more. */
void pb_source_files_hand(const struct pb_config *config, const struct pb_pipeline_config *pipeline,
                          const char *scene, const struct pb_source_files *files);
/* No-op on a zeroed struct. */
void pb_source_files_close(struct pb_source_files *files);
/* Puts the source's name and path into the message of an error about the file of a source, whose
 * place they become: jobs are told apart by their scene. Another error stays as it is. err may be
 * NULL. */
void pb_source_files_blame(const struct pb_config *config,
                           const struct pb_pipeline_config *pipeline, const char *scene,
                           struct pb_err *err);
/* Where the grid of `other` lies on that of `scene`: parallel axes in one coordinate system.
 * Differences below a millionth of a pixel, over the whole image, are none. */
bool pb_source_place(const struct pb_raster *scene, const struct pb_raster *other,
                     struct pb_map *out_map);
#endif
