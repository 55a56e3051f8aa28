/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/metadata_files.h"

void pb_metadata_files_init(struct pb_metadata_files *files)
{
    *files = (struct pb_metadata_files){.n = 0};
    for (size_t i = 0; i < PB_METADATA_OPEN_MAX; i++)
        files->file[i].fd = -1;
}

void pb_metadata_files_close(struct pb_metadata_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        pb_raster_file_close(&files->file[i]);
    pb_metadata_files_init(files);
}

size_t pb_metadata_files_fds(const struct pb_metadata_files *files, int *out)
{
    size_t n = 0;
    for (size_t i = 0; i < files->n; i++)
        if (files->file[i].fd >= 0)
            out[n++] = files->file[i].fd;
    return n;
}
