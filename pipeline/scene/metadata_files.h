/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METADATA_FILES_H
#define PB_METADATA_FILES_H
/* The open files of input.metadata: of one scene, in the order of its patterns, or of each of its
 * observations (scene_counted.h), in that of their names. One thread an object. */
#include "config/config.h"
#include "pipeline/raster/raster_file.h"

struct pb_metadata_files {
    struct pb_raster_file file[PB_METADATA_OPEN_MAX];
    size_t n; /* those that are there; the others have fd -1 */
};

void pb_metadata_files_init(struct pb_metadata_files *files); /* none */
void pb_metadata_files_close(struct pb_metadata_files *files);
/* Their descriptors, into out; how many. */
size_t pb_metadata_files_fds(const struct pb_metadata_files *files, int *out);
#endif
