/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_INSIDE_H
#define PB_PUBLISH_INSIDE_H
/* State of struct pb_publish: publish_open.c chooses the place and makes the temporary
 * directory, publish.c commits. Included only by these files. */
#include "pipeline/publish/publish.h"
#include "pipeline/publish/publish_place.h"
#include "pipeline/publish/publish_rows.h"
#include "pipeline/publish/publish_temp.h"

#include <limits.h>

struct pb_publish {
    struct pb_input_id input;
    struct pb_input_sum *sum;
    struct pb_scene_manifest files; /* files of sum, with checksums at the end */
    struct pb_place_wanted wanted;  /* its strings are below */
    struct pb_output_place path;    /* without a version */
    unsigned mode;
    void (*request_permit)(void *user);
    int (*permit)(void *user, struct pb_err *err);
    void *permit_user;
    char form[PB_OUTPUT_PATH_BYTES]; /* output.path */
    char scene[256], leaf[256];      /* leaf: directory of the files in the temporary directory */
    char products[PATH_MAX], pipeline[256], job[64], input_path[PATH_MAX];
    char base[PATH_MAX + PB_OUTPUT_PATH_BYTES + 1]; /* products/parents */
    char directory[PATH_MAX];                       /* products/temp/scene/leaf */
    char place[256];                                /* name of the scene directory */
    char shown[PB_OUTPUT_PATH_BYTES + 260];         /* parents/place */
    char marked[256]; /* the place that the temporary directory's manifest names */
    struct pb_publish_temp temp;
    int products_fd, base_fd;             /* base_fd: -1 until the parents exist */
    int mark_fd;                          /* descriptor of its mark until that is synced, else -1 */
    bool placed;                          /* path, base_fd and place are chosen */
    bool committed, unsynced, identified; /* identified: the marker has the checksum */
    bool leaves_temp; /* the temporary directory is left for the next publication */
    bool rows_left;   /* rows or the extent are pending: their record is preserved */
    struct pb_publish_rows rows;
    char warning[PATH_MAX + 400];
};

/* Name of the directory of the files when published. */
const char *pb_publish_leaf_of(const struct pb_publish *p);
/* Completes the input's identity by a checksum of that kind. */
int pb_publish_know_input(struct pb_publish *p, enum pb_checksum kind, struct pb_err *err);
/* Chooses p->place, with the input's checksums if it depends on them. */
int pb_publish_choose_place(struct pb_publish *p, struct pb_err *err);
void pb_publish_show_place(struct pb_publish *p);
/* Writes the manifest that marks the temporary directory as ours, and later the scene directory
 * as this input's. Not synced: p->mark_fd. */
int pb_publish_write_mark(struct pb_publish *p, struct pb_err *err);
void pb_publish_drop_mark(struct pb_publish *p); /* closes p->mark_fd */
/* Opens the parents. make: creates them if missing; otherwise p->base_fd is -1 then. */
int pb_publish_open_base(struct pb_publish *p, bool make, struct pb_err *err);
#endif
