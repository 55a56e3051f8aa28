/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_INSIDE_H
#define PB_PUBLISH_INSIDE_H
/* Inside publish.h: publish_open.c chooses the place and makes the temporary directory, publish.c
 * commits. Nobody else includes this. */
#include "pipeline/publish/publish.h"
#include "pipeline/publish/publish_place.h"
#include "pipeline/publish/publish_rows.h"
#include "pipeline/publish/publish_temp.h"

#include <limits.h>

struct pb_publish {
    struct pb_input_id input;
    struct pb_input_sum *sum;
    struct pb_input_files inputs; /* n 0: not known yet */
    bool is_folder;
    struct pb_place_wanted wanted; /* its strings are those below */
    struct pb_output_place path;   /* without a version */
    unsigned mode;
    char form[PB_OUTPUT_PATH_BYTES]; /* output.path */
    char scene[256], leaf[256];      /* leaf: of the temporary directory, holds the files */
    char products[PATH_MAX], pipeline[256], job[64], input_path[PATH_MAX];
    char base[PATH_MAX + PB_OUTPUT_PATH_BYTES + 1]; /* products/parents */
    char directory[PATH_MAX];                       /* products/temp/scene/leaf */
    char place[256];                                /* name of the scene directory */
    char shown[PB_OUTPUT_PATH_BYTES + 260];         /* parents/place */
    char marked[256]; /* the place that the temporary directory's manifest names */
    struct pb_publish_temp temp;
    int products_fd, base_fd;             /* base_fd: -1 until the parents exist */
    int mark_fd;                          /* of its mark until that is synced, else -1 */
    bool placed;                          /* path, base_fd and place are chosen */
    bool committed, unsynced, identified; /* identified: the marker has the checksum */
    bool rows_left; /* rows or the extent are still to be put in: their record stays */
    struct pb_publish_rows rows;
    char warning[PATH_MAX + 400];
};

/* The name that the directory of the files has when it is published. */
const char *pb_publish_leaf_of(const struct pb_publish *p);
/* Completes the input's identity by a checksum of that kind. */
int pb_publish_know_input(struct pb_publish *p, enum pb_checksum kind, struct pb_err *err);
/* Chooses p->place, by the input's checksums where it depends on them. */
int pb_publish_choose_place(struct pb_publish *p, struct pb_err *err);
void pb_publish_show_place(struct pb_publish *p);
/* The manifest that makes the temporary directory ours, and later the scene directory this
 * input's. It is not synced: p->mark_fd. */
int pb_publish_write_mark(struct pb_publish *p, struct pb_err *err);
void pb_publish_drop_mark(struct pb_publish *p); /* closes p->mark_fd */
/* make: the parents are created when they are missing, else p->base_fd stays -1. */
int pb_publish_open_base(struct pb_publish *p, bool make, struct pb_err *err);
#endif
