/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_MOVE_H
#define PB_PUBLISH_MOVE_H
/* The renames that make products visible, each with its sync and, when that fails, its way back.
 * All return 0; -EAGAIN when the directory has changed since it was examined (examine it again);
 * -ESTALE when the own files are gone: a later run of the job has fenced this one (publish_temp.h);
 * or another negative errno. Where not 0, a reader finds the previous state. Thread: any. */
#include <sys/stat.h>

struct pb_publish_move {
    int temp_fd;       /* of the temporary directory, which holds PB_PUBLISH_SCENE */
    int from_fd;       /* of that; after move_scene it is the scene directory */
    int base_fd;       /* of the directory that gets <place>; for move_scene */
    int scene_fd;      /* of the directory that gets <name>; not for move_scene */
    const char *leaf;  /* <from>/<leaf> is what becomes visible */
    const char *place; /* of move_scene: <base>/<place>/<leaf> is where */
    const char *name;  /* of the others: <scene>/<name> is where */
    int unsynced; /* out, with 0: errno of a sync that failed where the rename could not be taken
                     back */
};

/* PB_PUBLISH_SCENE becomes the scene directory. */
int pb_publish_move_scene(struct pb_publish_move *move);
/* Into a directory that has nothing of that name. */
int pb_publish_move_leaf(struct pb_publish_move *move);
/* Changes places with the older products, which must be the directory `old`. They are left in
 * <from>, as <leaf> or, where the file system cannot exchange, as PB_PUBLISH_OLD;
 * there a reader finds nothing between the two renames, and a sweep puts the older ones back after
 * a crash between them. */
int pb_publish_move_exchange(struct pb_publish_move *move, const struct stat *old);

/* fsync of a directory. File systems that cannot do that count as done: their renames are as
 * durable as they get. */
int pb_publish_sync(int fd);
#endif
