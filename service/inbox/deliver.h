/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DELIVER_H
#define PB_DELIVER_H
/* Brings a file or a folder into an inbox under a ".part" name, which the service leaves alone,
 * with the group and the permissions that the service needs, and on the disk; then renames it.
 * Nothing in the inbox is overwritten. Runs with the rights of the user who delivers. Thread: one.
 */
#include "config/base/err.h"
#include "service/base/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_deliver_tree;

struct pb_deliver_options {
    const char *inbox; /* directory, borrowed */
    bool moves;        /* the source is gone at the end */
    /* Returns true to stop: called between pieces of work, with the bytes that were copied. */
    bool (*on_progress)(void *user, uint64_t done_bytes, uint64_t total_bytes);
    void *user;
};

struct pb_delivery {
    struct pb_deliver_options options;
    char source[PB_FILES_PATH_BYTES];
    char name[256]; /* in the inbox */
    char part[PB_FILES_PATH_BYTES];
    char place[PB_FILES_PATH_BYTES]; /* its final path */
    struct pb_deliver_tree *tree;    /* entries of the source */
    uint64_t bytes, done_bytes;      /* total of its files, and copied ones */
    size_t files;
    bool is_folder;
    bool renamed; /* part is the source itself, not a copy */
    bool is_part; /* something of ours is at part */
};

/* Copies or moves the source to its ".part" name. 0; -EINTR: on_progress stopped it (no *err); else
 * *err. *out needs pb_deliver_end in any case. */
int pb_deliver_begin(const struct pb_deliver_options *options, const char *source,
                     struct pb_err *err, struct pb_delivery *out);
/* Renames it to its place: 0, or *err. */
int pb_deliver_commit(struct pb_delivery *delivery, struct pb_err *err);
/* After a commit that moves a copy: removes the source as far as it is unchanged; false: something
 * of it is left. True without such a copy. */
bool pb_deliver_remove_source(const struct pb_delivery *delivery);
/* Without a commit: removes the copy, or moves the source back. Frees. */
void pb_deliver_end(struct pb_delivery *delivery);
#endif
