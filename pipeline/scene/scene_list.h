/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_LIST_H
#define PB_SCENE_LIST_H
/* File that lists the counted files of a scene in their order (input.list): in each line the
 * name of a file, or its path inside the scene, optionally after ./. Empty lines and lines that
 * begin with # are ignored. One thread per object. */
#include "pipeline/raster/raster_file.h"

#define PB_SCENE_LIST_BYTES_MAX (1024 * 1024)
#define PB_SCENE_LIST_MAX       4096

struct pb_scene_list_line {
    const char *name;
    int line; /* line of the file, from 1 */
};

struct pb_scene_list {
    char *text; /* text that contains the names */
    struct pb_scene_list_line *one;
    size_t n;
};

/* Reads an open file. input.metadata_invalid: it is too large, is not text, or lists nothing;
 * input.io, memory. *out needs fini in any case. */
int pb_scene_list_read(struct pb_raster_file *file, struct pb_err *err, struct pb_scene_list *out);
void pb_scene_list_fini(struct pb_scene_list *list);
/* Returns true if the line refers to the file of that path inside the scene. */
bool pb_scene_list_means(const struct pb_scene_list_line *line, const char *path);
#endif
