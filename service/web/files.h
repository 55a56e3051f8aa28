/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_FILES_H
#define PB_WEB_FILES_H
/* Opens product files for reading: only plain files that the .pushbroom.json of their directory
 * names. Thread: any. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_web_file {
    int fd; /* the caller's */
    uint64_t bytes;
    char tag[96];        /* entity tag with its quotes; another content has another one */
    char media_type[96]; /* one that a browser does not run as a program */
};

/* Opens a path below the open directory; no part of it may be a link. Returns the descriptor, or a
 * negative errno as below. */
int pb_web_open_below(int directory, const char *path, int flags);

/* Opens the file at this path below the directory of products. Returns 0; -ENOENT if it does not
 * exist or is no product; -ENOSYS if the kernel lacks openat2 (before Linux 5.6); another negative
 * errno. */
int pb_web_file_open(const char *products, const char *path, struct pb_web_file *out);

/* Returns true if the directory of an absolute path is that of the whole system, to which nothing
 * can be restricted. */
bool pb_web_files_in_root(const char *path);

/* Restricts the calling thread and those that it starts later (Landlock): they read products, the
 * map library and the directory of tokens, and change no file but that of the Unix socket.
 * token_file is a path or the name of a credential; NULL = none, like unix_socket. Returns 1 =
 * active, 0 = the kernel cannot do that, negative with *err. */
int pb_web_files_confine(const char *products, const char *token_file, const char *unix_socket,
                         struct pb_err *err);
#endif
