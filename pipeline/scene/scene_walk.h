/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_WALK_H
#define PB_SCENE_WALK_H
/* The names of all files below a folder, and their opening, without leaving it: every step on the
 * way is opened by its name in the directory before it, and none may be a symbolic link. One thread
 * an object. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_scene_walk;

struct pb_scene_entry {
    char *path;                         /* inside the folder */
    bool is_link;                       /* a symbolic link: never followed */
    const struct pb_scene_walk *joined; /* the walk of the folder that has it; NULL = this one */
};

struct pb_scene_walk {
    int fd;       /* of the folder; -1 = none */
    char *folder; /* of one that is opened anew for each file, as fd is -1; else NULL */
    /* Folders whose entries were added to these (scene_joined.h). */
    struct pb_scene_walk *joined;
    size_t n_joined;
    struct pb_scene_entry *entry;
    size_t n, room;
    /* Of all that lies in the folder, for who waits until nothing changes: */
    uint64_t bytes;      /* of the plain files */
    uint64_t digest;     /* of paths, sizes, inodes, times and links; no proof against deceit */
    int64_t youngest_ns; /* the youngest ctime, that of a folder that is the scene among them */
    size_t n_linked;     /* plain files with several names */
};

/* Lists plain files and symbolic links, directories among them being walked; other kinds are left
 * out. In the order of their paths. input.missing, input.limit, input.io, memory. *out needs close
 * in any case. */
int pb_scene_walk_open(const char *folder, struct pb_err *err, struct pb_scene_walk *out);
/* The loose files of a scene in a folder that may hold others: those whose names `group` fits with
 * that scene, or, where metadata told their scene, those of the n names; no folder in it is walked.
 */
struct pb_group_pattern;
struct pb_scene_loose {
    const struct pb_group_pattern *group;
    const char *scene;
    const char *const *name; /* NULL: the names themselves tell the scene */
    size_t n;
};
int pb_scene_walk_open_group(const char *folder, const struct pb_scene_loose *loose,
                             struct pb_err *err, struct pb_scene_walk *out);
void pb_scene_walk_close(struct pb_scene_walk *walk);
/* Closes the folder, which is opened by that path (copied) for each file from now on: there may be
 * more of such folders than a process may have descriptors. 0 or -ENOMEM. */
int pb_scene_walk_rest(struct pb_scene_walk *walk, const char *folder);
/* A descriptor of a file for reading, or a negative errno; -ELOOP: a link is on the way. reader: a
 * user who must be allowed to read it, as far as owner and other permissions tell, else -EACCES;
 * -1: anybody. */
int pb_scene_walk_open_file(const struct pb_scene_walk *walk, const char *path, int64_t reader);
/* Whether the pattern of a configuration fits a path inside the folder: without a slash its last
 * part, with one all of it. */
bool pb_scene_walk_fits(const char *pattern, const char *path);
#endif
