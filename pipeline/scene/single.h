/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SINGLE_H
#define PB_SINGLE_H
/* Pipeline and purpose of one input without a listing: one that is claimed, submitted or processed
 * again. A file or folder is judged by its name alone, with the rules of the assembly (assemble.h);
 * the folder of a set of loose files, which contains the set from its claim on, by its files.
 * Thread: any. */
#include <stdbool.h>

struct pb_config;
struct pb_err;
struct pb_pipeline_config;

enum pb_single_kind {
    PB_SINGLE_INPUT,    /* an input by itself: a file, an archive or a folder */
    PB_SINGLE_PART,     /* one of several files of a scene (input.group) */
    PB_SINGLE_METADATA, /* metadata of another file (input.metadata) */
    PB_SINGLE_SIDECAR,  /* sidecar of another file */
    PB_SINGLE_FOREIGN   /* no pipeline takes it */
};

struct pb_single {
    enum pb_single_kind kind;
    const struct pb_pipeline_config *pipeline; /* NULL for SIDECAR and FOREIGN */
    char scene[256];                           /* PART: "" = its metadata determine the scene */
};

void pb_single_find(const struct pb_config *config, const char *path, bool is_folder,
                    struct pb_single *out);

/* Finds the first pipeline whose input.group assigns a file of the folder to this scene; *out is
 * NULL if absent. Fails if the folder cannot be listed: memory, or an error of pb_scene_walk_open.
 */
int pb_set_folder_pipeline(const struct pb_config *config, const char *path, const char *scene,
                           struct pb_err *err, const struct pb_pipeline_config **out);
#endif
