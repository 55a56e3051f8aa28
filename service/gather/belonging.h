/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BELONGING_H
#define PB_BELONGING_H
/* What each file of an inbox is, by the names that lie there and by what is known of metadata: a
 * scene of its own, a file of a set (input.group), or one that belongs to another file (sidecars,
 * input.metadata). No I/O. Thread: any. */
#include "config/config.h"
#include "service/worker/described.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_belongs {
    PB_BELONGS_ALONE,   /* a scene of its own, or nothing that we know */
    PB_BELONGS_MAIN,    /* a scene whose pipeline waits for files beside it, or that has some */
    PB_BELONGS_SET,     /* one of the files of a set */
    PB_BELONGS_ASKED,   /* of a set that its metadata tell, which are not known yet */
    PB_BELONGS_BESIDE,  /* to the file `main` */
    PB_BELONGS_NOWHERE, /* a sidecar whose file is not here */
    PB_BELONGS_AWAITS   /* metadata whose file is not here */
};

struct pb_belonging {
    const char *name; /* below the inbox; the caller's */
    bool is_folder;   /* the caller's: stays ALONE */
    bool is_still;    /* the caller's: it does not change any more */
    uint64_t state;   /* the caller's: another number when it changed */
    enum pb_belongs belongs;
    const struct pb_pipeline_config *pipeline; /* NULL: none takes it */
    char scene[256];                           /* SET: of the set */
    size_t main;                               /* BESIDE: number of that file */
    /* Of a file whose metadata tell its set; ALONE, or MAIN with these, when they do not: */
    bool is_asked;                     /* it is one, not metadata */
    const struct pb_described *answer; /* NULL: not known yet */
    uint64_t digest;                   /* its state and that of its metadata */
    bool may_be_asked;                 /* all of these are still */
    bool lacks_metadata;               /* there are none of input.metadata */
};

/* Where answers are kept (asked.h). */
struct pb_belonging_answers {
    const struct pb_described *(*find)(void *user, const char *name, uint64_t digest);
    void *user;
};

/* The first pipeline for which a file of that name is metadata of another one; NULL: none. */
const struct pb_pipeline_config *pb_belonging_metadata(const struct pb_config *config,
                                                       const char *name);
/* Fills in n files; each belongs to one of its own directory. -ENOMEM: nothing is known. */
int pb_belonging_sort(struct pb_belonging *file, size_t n, const struct pb_config *config,
                      const struct pb_belonging_answers *answers);
#endif
