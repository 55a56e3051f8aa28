/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_FILES_H
#define PB_WEB_FILES_H
/* Opens product files for reading: only plain files that the .pushbroom.json of their directory
 * names. Thread: any. */
#include <stdint.h>

struct pb_web_file {
    int fd; /* the caller's */
    uint64_t bytes;
    char tag[96];        /* entity tag with its quotes; another content has another one */
    char media_type[96]; /* one that a browser does not run as a program */
};

/* Opens the file at this path below the directory of products. Returns 0; -ENOENT if it does not
 * exist or is no product; -ENOSYS if the kernel lacks openat2 (before Linux 5.6); another negative
 * errno. */
int pb_web_file_open(const char *products, const char *path, struct pb_web_file *out);
#endif
