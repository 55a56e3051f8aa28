/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BELONGING_H
#define PB_BELONGING_H
/* Assigns each file of an inbox, by the names in it and the known metadata: a scene of its own, a
 * file of a set (input.group), or a file that belongs to another one (sidecars, input.metadata). No
 * I/O. Thread: any. */
#include "service/worker/described.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_config;
struct pb_pipeline_config;

enum pb_belongs {
    PB_BELONGS_ALONE, /* a single-file scene, or an unknown file */
    PB_BELONGS_MAIN, /* a scene whose pipeline waits for files next to it, or that has such files */
    PB_BELONGS_SET,  /* one of the files of a set */
    PB_BELONGS_ASKED,   /* part of a set by its metadata, which are not known yet */
    PB_BELONGS_BESIDE,  /* belongs to the file `main` */
    PB_BELONGS_NOWHERE, /* a sidecar whose main file is absent */
    PB_BELONGS_AWAITS   /* metadata whose main file is absent */
};

struct pb_belonging {
    const char *name; /* input: path below the inbox, borrowed */
    bool is_folder;   /* input: stays ALONE */
    bool is_still;    /* input: it stopped changing */
    uint64_t state;   /* input: a number that differs after a change */
    enum pb_belongs belongs;
    const struct pb_pipeline_config *pipeline; /* NULL: no pipeline takes it */
    char scene[256];                           /* SET: name of the set */
    size_t main; /* for a file that belongs to another one: number of that file */
    /* For a file whose metadata determine its set; ALONE or MAIN with these members if they do
     * not: */
    bool is_asked;                     /* false for the metadata file itself */
    const struct pb_described *answer; /* NULL: unknown yet */
    uint64_t digest;                   /* digest of its state and of that of its metadata */
    bool may_be_asked;                 /* the file and its metadata stopped changing */
    bool lacks_metadata;               /* no file of input.metadata was found */
};

/* Cache of answers of metadata queries (`asked.h`). */
struct pb_belonging_answers {
    const struct pb_described *(*find)(void *user, const char *name, uint64_t digest);
    void *user;
};

/* Finds the first pipeline for which a file of that name is metadata of another file; NULL if
 * absent. */
const struct pb_pipeline_config *pb_belonging_metadata(const struct pb_config *config,
                                                       const char *name);
/* Fills in n files; each belongs to a file of its own directory. -ENOMEM: no result. */
int pb_belonging_sort(struct pb_belonging *file, size_t n, const struct pb_config *config,
                      const struct pb_belonging_answers *answers);
#endif
