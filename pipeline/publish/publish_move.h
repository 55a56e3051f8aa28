/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_MOVE_H
#define PB_PUBLISH_MOVE_H
/* Renames that make products visible, each with its sync and a rollback if the sync fails. All
 * return 0; -EAGAIN if the directory has changed since it was examined (examine it again);
 * -ESTALE if our own files are missing: a later run of the job has fenced this one
 * (publish_temp.h); or another negative errno. If not 0, a reader finds the previous state.
 * Thread: any. */
#include <sys/stat.h>

struct pb_publish_move {
    int temp_fd;       /* the temporary directory, which contains PB_PUBLISH_SCENE */
    int from_fd;       /* PB_PUBLISH_SCENE; after move_scene it is the scene directory */
    int base_fd;       /* the directory that gets <place>; for move_scene */
    int scene_fd;      /* the directory that gets <name>; not for move_scene */
    const char *leaf;  /* <from>/<leaf> becomes visible */
    const char *place; /* for move_scene: the destination is <base>/<place>/<leaf> */
    const char *name;  /* for the others: the destination is <scene>/<name> */
    int unsynced;      /* out, with 0: errno of a failed sync if the rename could not be reverted */
};

/* Renames PB_PUBLISH_SCENE to the scene directory. */
int pb_publish_move_scene(struct pb_publish_move *move);
/* Moves into a directory that does not have that name. */
int pb_publish_move_leaf(struct pb_publish_move *move);
/* Exchanges with the older products, which must be the directory `old`. These are then in
 * <from>, as <leaf> or, if the file system cannot exchange, as PB_PUBLISH_OLD; in that case a
 * reader finds no products between the two renames, and a sweep restores the older ones after a
 * crash between them. */
int pb_publish_move_exchange(struct pb_publish_move *move, const struct stat *old);

/* fsync of a directory. Returns success on file systems that do not support it: there is no
 * stronger guarantee for their renames. */
int pb_publish_sync(int fd);
#endif
