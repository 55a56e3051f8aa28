/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BELONGING_H
#define PB_BELONGING_H
/* What each file of an inbox is, by the names that lie there: a scene of its own, a file of a set
 * (input.group), or one that belongs to another file (sidecars, input.metadata). No I/O. Thread:
 * any. */
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>

enum pb_belongs {
    PB_BELONGS_ALONE,   /* a scene of its own, or nothing that we know */
    PB_BELONGS_MAIN,    /* a scene whose pipeline waits for files beside it, or that has some */
    PB_BELONGS_SET,     /* one of the files of a set */
    PB_BELONGS_BESIDE,  /* to the file `main` */
    PB_BELONGS_NOWHERE, /* a sidecar whose file is not here */
    PB_BELONGS_AWAITS   /* metadata whose file is not here */
};

struct pb_belonging {
    const char *name; /* below the inbox; the caller's */
    bool is_folder;   /* the caller's: stays ALONE */
    enum pb_belongs belongs;
    const struct pb_pipeline_config *pipeline; /* NULL: none takes it */
    char scene[256];                           /* SET: of the set */
    size_t main;                               /* BESIDE: number of that file */
};

/* The first pipeline for which a file of that name is metadata of another one; NULL: none. */
const struct pb_pipeline_config *pb_belonging_metadata(const struct pb_config *config,
                                                       const char *name);
/* Fills in n files; each belongs to one of its own directory. -ENOMEM: nothing is known. */
int pb_belonging_sort(struct pb_belonging *file, size_t n, const struct pb_config *config);
#endif
