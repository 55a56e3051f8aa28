/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHILD_FILES_H
#define PB_CHILD_FILES_H
/* The files that a job of a resident child reads: their descriptors come over the socket with the
 * "run" command, the input's first, then those of sources. Thread: the one that reads commands,
 * while no job runs. */
#include "config/base/json_reader.h"
#include "pipeline/raster/source_files.h"
#include "service/base/line_reader.h"

struct pb_child_files {
    int input; /* -1 = none */
    struct pb_source_files sources;
};

/* Takes the descriptors from the reader, and makes pb_raster_open() find them. "sources" in the
 * command says which were sent: an object each, whose "error" is 0, or the errno of the attempt to
 * open it. service.protocol when they are not those that the command announces. */
int pb_child_files_take(struct pb_child_files *files, struct pb_line_reader *reader,
                        const struct pb_json_value *command, const struct pb_config *config,
                        struct pb_err *err);
/* Closes them, after the job. */
void pb_child_files_forget(struct pb_child_files *files);
#endif
