/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DELIVER_H
#define PB_DELIVER_H
/* Delivers a file or a folder to an inbox: writes it under a ".part" name, which the service
 * ignores, with the group and the permissions that the service needs, syncs it and then renames
 * it. No file of the inbox is overwritten. Runs with the rights of the user who delivers. Thread:
 * one. */
#include "config/base/err.h"
#include "service/base/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_deliver_tree;

struct pb_deliver_options {
    const char *inbox; /* directory, borrowed */
    bool moves;        /* true if the source is removed at the end */
    /* Returns true to stop; called between pieces of work, with the count of copied bytes. */
    bool (*on_progress)(void *user, uint64_t done_bytes, uint64_t total_bytes);
    void *user;
};

struct pb_delivery {
    struct pb_deliver_options options;
    char source[PB_FILES_PATH_BYTES];
    char name[256]; /* name in the inbox */
    char part[PB_FILES_PATH_BYTES];
    char place[PB_FILES_PATH_BYTES]; /* its final path */
    struct pb_deliver_tree *tree;    /* entries of the source */
    uint64_t bytes, done_bytes;      /* total of the source's files, and copied bytes */
    size_t files;
    bool is_folder;
    bool renamed; /* true if the file at `part` is the source itself, not a copy */
    bool is_part; /* true if the file at `part` was put there by this delivery */
};

/* Copies or moves the source to its ".part" name. Returns 0; -EINTR if on_progress stopped it (no
 * *err); otherwise *err. *out needs pb_deliver_end in any case. */
int pb_deliver_begin(const struct pb_deliver_options *options, const char *source,
                     struct pb_err *err, struct pb_delivery *out);
/* Renames the ".part" file to its final name: 0, or *err. */
int pb_deliver_commit(struct pb_delivery *delivery, struct pb_err *err);
/* After the commit of a copy for a move: removes the source as far as it is unchanged. Returns
 * false if a part of it is left; true if there was no such copy. */
bool pb_deliver_remove_source(const struct pb_delivery *delivery);
/* Without a commit: removes the copy, or moves the source back. Frees the delivery. */
void pb_deliver_end(struct pb_delivery *delivery);
#endif
