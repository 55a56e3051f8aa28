/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_TEMP_H
#define PB_PUBLISH_TEMP_H
/* Temporary directory of a run, from its creation to its removal by the run or, after a crash,
 * by a sweep: products/.<scene>.<job>.<epoch>.<holder>.tmp (holder.h).
 *
 *   .lock             an open lock of the run; server-side on network file systems
 *   .rows             record of rows for files that scenes share (publish_rows.h)
 *   scene/            becomes <products>/<scene> if that is absent
 *     .pushbroom.json   manifest of a scene directory; written first
 *     <leaf>/           files being written; after an exchange the older products
 *     .old/             older products set aside, on file systems that cannot exchange two
 *                       directories
 *
 * A sweep removes it if all of these hold: its name; this machine's node in it; no process of
 * the name's number and start time; free locks on the directory and on .lock; and our manifest,
 * or no content yet. The lock on the directory only distinguishes processes of one machine; it
 * is not forwarded to the server of a network file system. A service that shares its jobs also
 * sweeps runs of other machines that are over by its store: it renames their directories first.
 *
 * <epoch> is the number of the run among those of its job. A new run has to fence those before it:
 * it renames their <leaf> and their scene/, so that their own rename, which makes products visible,
 * fails with ENOENT. Therefore an abandoned worker cannot replace the products of its successor,
 * however late it continues. Runs of all machines are fenced, because machines may share the jobs.
 * A run that makes its directory after the fence finds the later run by its directory, or by the
 * manifest of its products (publish_place.h). The job of `pushbroom run` is "run", which fences
 * nothing.
 *
 * Older products are removed file by file as named in their manifest: other files, and files
 * changed since, are preserved. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define PB_PUBLISH_OLD   ".old"
#define PB_PUBLISH_SCENE "scene"

struct pb_publish_temp {
    char name[256]; /* "" = not made */
    int fd;         /* the directory, with its lock; -1 = not made */
    int lock_fd;    /* .lock, with its lock */
    int scene_fd;   /* scene/ */
};

/* The run for which a directory is made. Strings are borrowed. */
struct pb_publish_run {
    const char *scene;
    const char *job; /* NULL or "" = a command */
    uint64_t epoch;  /* above 1: earlier runs of the job are fenced */
};

/* Makes and locks a temporary directory in the open directory (shown in messages), or renames the
 * one that a publication of this process has left there. Fails if a later run of the job has one.
 */
int pb_publish_temp_make(int products_fd, const char *shown, const struct pb_publish_run *run,
                         struct pb_err *err, struct pb_publish_temp *out);
/* Closes .lock, so that it can be removed on file systems that preserve open files. The
 * directory stays locked for this machine. */
void pb_publish_temp_unlock(struct pb_publish_temp *temp);
/* Moves products that were set aside back if they are missing, then removes scene/ and fenced
 * directories. Returns false if something remains. */
bool pb_publish_temp_empty(int products_fd, int temp_fd);
/* The same, and removes the directory. The caller has its lock. */
bool pb_publish_temp_discard(int products_fd, const char *name);
/* Leaves an empty temporary directory, with its locks, for the next pb_publish_temp_make of this
 * process, and clears *temp. Returns false if it cannot; *temp is unchanged then. Thread: any. */
bool pb_publish_temp_leave(int products_fd, struct pb_publish_temp *temp);
bool pb_publish_temp_is_left(void);
void pb_publish_temp_close(struct pb_publish_temp *temp); /* ends the locks */
#endif
