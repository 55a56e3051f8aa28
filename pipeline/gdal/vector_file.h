/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_FILE_H
#define PB_VECTOR_FILE_H
/* A vector file and its companion files, as files in GDAL's memory. */
#include <stddef.h>
#include <stdint.h>

struct pb_err;

struct pb_vector_file {
    char folder[64]; /* "/vsimem/pb_vector_7" */
    char name[360];  /* name that GDAL opens: in the folder, with the file's own name */
    char **siblings; /* all names in the folder; a GDAL string list */
    uint64_t stamp;  /* hash of device, inode, size and change time of all of them; never 0 */
    uint64_t bytes;  /* sum of their sizes */
};

/* Returns 0, or the errors of pb_vector_read about files; *file needs close in any case. Thread:
 * any. */
int pb_vector_file_open(struct pb_vector_file *file, const char *path, struct pb_err *err);
/* Replaces the file's name in memory by its original path in the message of an error. */
void pb_vector_file_blame(const struct pb_vector_file *file, const char *path, struct pb_err *err);
void pb_vector_file_close(struct pb_vector_file *file);
#endif
