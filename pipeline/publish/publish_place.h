/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_PLACE_H
#define PB_PUBLISH_PLACE_H
/* Selection of the directory below products/ for an input, by the rules of publish.h; changes no
 * file. Thread: any. */
#include "pipeline/publish/publish.h"

#include <stdbool.h>
#include <sys/stat.h>

struct pb_input_sum;
struct pb_scene_files;
struct pb_scene_manifest;

struct pb_place_wanted {
    const char *shown; /* directory that gets the place, for messages */
    const char *scene; /* name of the place without a version */
    const char *inner; /* directory of the files in the place; "" = the place itself */
    const char *pipeline;
    const struct pb_input_id *input;
    enum pb_checksum checksum; /* kind that `input` has, or gets in any case */
    bool is_final;             /* no other checksum of `input` will be known */
    const char *input_path;    /* see struct pb_publish_options */
    enum pb_existing existing;
    const struct pb_input_sum *sum;        /* sum of the input; NULL = not computed */
    const struct pb_scene_manifest *files; /* files of an input of several files, those of sum;
                                              NULL = one file */
    /* loose files of a scene: products of files that it lacks are preserved; NULL = others */
    const struct pb_scene_files *set;
    bool is_open;        /* a set that files may join: products of a part of it are replaced */
    const char *earlier; /* jobs that made these files' products: ids, each followed by a space;
                            NULL: no jobs */
    const char *job;     /* "" = a command */
    uint64_t epoch;      /* number of this run of the job; 0 = unknown */
};

enum pb_place_state {
    PB_PLACE_FREE,  /* the name is unused */
    PB_PLACE_OURS,  /* this input's scene directory, without the inner name */
    PB_PLACE_HOLDS, /* older products of this input and pipeline: to be exchanged */
    PB_PLACE_ALIKE, /* an input of the same size; the wanted one's checksum of kind `needs`, not yet
                       known, decides if it is the same */
    PB_PLACE_ANOTHER /* another input that must not be replaced, or foreign */
};

struct pb_place_look {
    enum pb_place_state state;
    int scene_fd; /* OURS and HOLDS: the directory that gets the files' directory, the caller's to
                     close; else -1 */
    struct stat products;   /* HOLDS: the directory of the older products */
    char why[400];          /* ANOTHER: "holds ..." */
    bool same_input;        /* the place is this input's, whatever its content */
    enum pb_checksum needs; /* ALIKE: the kind in the directory's manifest */
    bool takes_over; /* the scene directory's manifest names another input, which is replaced */
};

/* Examines <base>/<place>; base_fd -1: that directory does not exist. Returns 0; -ESTALE: a later
 * run of the job, or another one with this epoch, has published there; or another negative errno if
 * it cannot be examined. */
int pb_place_look(int base_fd, const char *place, const struct pb_place_wanted *wanted,
                  struct pb_place_look *out);
/* Chooses the place: the scene's own name, else, with versions, the one that is this input's,
 * else the first free one; or output.exists. Returns 1 if that depends on the wanted input's
 * checksum of the kind *out_needs; call again with it. */
int pb_place_choose(int base_fd, const struct pb_place_wanted *wanted, struct pb_err *err,
                    char out_place[256], enum pb_checksum *out_needs);
#endif
