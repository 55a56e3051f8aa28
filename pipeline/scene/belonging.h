/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BELONGING_H
#define PB_BELONGING_H
/* First half of the assembly of scenes (assemble.h): assigns each entry, by the names of all and by
 * the known facts, to a scene of its own, to a set (input.group), or to another file (sidecars,
 * input.metadata). Pure. Thread: any. */
#include "pipeline/scene/entry.h"
#include "pipeline/scene/manifest.h"

struct pb_arena;
struct pb_config;
struct pb_pipeline_config;

enum pb_belongs {
    PB_BELONGS_ALONE, /* a single-file scene, a folder, or an unknown file */
    PB_BELONGS_MAIN, /* a scene whose pipeline waits for files next to it, or that has such files */
    PB_BELONGS_SET,  /* one of the files of a set */
    PB_BELONGS_ASKED,   /* part of a set by its metadata, which are not known yet */
    PB_BELONGS_BESIDE,  /* belongs to the file `main` */
    PB_BELONGS_NOWHERE, /* a sidecar whose main file is absent */
    PB_BELONGS_AWAITS,  /* metadata whose main file is absent */
    PB_BELONGS_CONTENT, /* in a folder or archive: one of the files of the scene of `main` */
    PB_BELONGS_SHARED,  /* in an archive: each of its scenes may use it */
    PB_BELONGS_OUTSIDE  /* in an archive: in none of the folders that are scenes */
};

struct pb_belonging {
    enum pb_belongs belongs;
    enum pb_role role;
    const struct pb_pipeline_config *pipeline; /* NULL: no pipeline takes it */
    const char *scene; /* SET, CONTENT: name of the scene, for {scene}; else "" */
    size_t main; /* for a file that belongs to another one: number of that file; CONTENT: number of
                    the first file of the scene */
    size_t root; /* CONTENT, SHARED: bytes of its path up to the folder that is the scene */
    /* For a file whose metadata determine its set; ALONE or MAIN with these members if they do
     * not: */
    bool is_asked;                     /* false for the metadata file itself */
    const struct pb_described *answer; /* NULL: unknown yet */
    uint64_t digest;                   /* digest of its state and of that of its metadata */
    bool may_be_asked;                 /* the file and its metadata stopped changing */
    bool lacks_metadata;               /* no file of input.metadata was found */
};

/* Names of a listing with the facts that follow from each name and the configuration alone, and
 * their order: the next listing examines only the names that are new. */
struct pb_belonging_names;

struct pb_belonging_rules {
    const struct pb_config *config;
    const struct pb_pipeline_config *only; /* takes all files; NULL: the names select pipelines */
    const struct pb_entry_facts *facts;
    struct pb_arena *arena; /* for names of sets */
    /* Those of the last listing, whose config and only were the same; the call replaces them by
     * those of this listing. NULL: no names are remembered. */
    struct pb_belonging_names *names;
};

/* Finds the first pipeline for which a file of that name is metadata of another file; NULL if
 * absent. */
const struct pb_pipeline_config *pb_belonging_metadata(const struct pb_config *config,
                                                       const char *name);
struct pb_belonging_names *pb_belonging_names_create(void);        /* NULL = out of memory */
void pb_belonging_names_destroy(struct pb_belonging_names *names); /* NULL is allowed */
/* Numbers in the last listing of the entries of this one, UINT32_MAX for a new one, in an ascending
 * order; borrowed until the next sort. */
const uint32_t *pb_belonging_names_last(const struct pb_belonging_names *names);
/* Merges two sorted arrays of elements of that size, the second of which is short, into out. */
void pb_belonging_merge(void *out, size_t bytes, const void *many, size_t n, const void *few,
                        size_t m, int (*compare)(const void *a, const void *b));
/* Fills in out for n entries; each belongs to a file of its own directory. -ENOMEM: no result. */
int pb_belonging_sort(const struct pb_entry *entry, size_t n,
                      const struct pb_belonging_rules *rules, struct pb_belonging *out);

/* Content of one folder or archive. */
struct pb_content_rules {
    const struct pb_pipeline_config *pipeline;
    const char *name; /* name of the scene unless the listing determines it */
    bool is_archive;  /* false: all entries are one scene */
    struct pb_arena *arena;
};

/* Fills in out for the n entries. A scene is each folder at the top of an archive that matches
 * input.scene; without a match, the files at the top, or the only folder there; for input.group the
 * files of one name in these. *out_why: the reason why there is no scene; NULL if there is one. 0
 * or -ENOMEM. */
int pb_belonging_content(const struct pb_entry *entry, size_t n,
                         const struct pb_content_rules *rules, struct pb_belonging *out,
                         const char **out_why);
#endif
