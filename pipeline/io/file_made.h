/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_MADE_H
#define PB_FILE_MADE_H
/* Descriptor of a file that is removed unless it is finished. One owner. */
#include "config/base/err.h"

#include <stdbool.h>

struct pb_file_made {
    const char *path; /* borrowed */
    int fd;           /* -1: closed, or never opened */
    bool regular;     /* a regular file; a device is never removed */
};

/* Creates or empties the file; path is borrowed until drop. Returns 0, or output.*. */
int pb_file_made_open(struct pb_file_made *made, const char *path, struct pb_err *err);
/* Syncs and closes; the file is preserved. Returns 0, or output.*: after a failure it is
 * removed, by drop at the latest. */
int pb_file_made_finish(struct pb_file_made *made, struct pb_err *err);
/* Closes and removes it if it is still open. */
void pb_file_made_drop(struct pb_file_made *made);
#endif
