/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METADATA_FILES_H
#define PB_METADATA_FILES_H
/* Open files of input.metadata: those of one scene, in the order of its patterns, or those of
 * each of its observations (scene_counted.h), in the order of their names. One thread per
 * object. */
#include "config/input_values.h"
#include "pipeline/raster/raster_file.h"

struct pb_metadata_files {
    struct pb_raster_file file[PB_METADATA_OPEN_MAX];
    size_t n; /* count of open files; the others have fd -1 */
};

void pb_metadata_files_init(struct pb_metadata_files *files); /* sets it to empty */
void pb_metadata_files_close(struct pb_metadata_files *files);
/* Copies their descriptors to out; returns the count. */
size_t pb_metadata_files_fds(const struct pb_metadata_files *files, int *out);
#endif
