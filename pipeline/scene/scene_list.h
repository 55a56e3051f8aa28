/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_LIST_H
#define PB_SCENE_LIST_H
/* The file that lists the counted files of a scene in their order (input.list): in each line the
 * name of one, or its path inside the scene, which ./ may begin. Empty lines and those that begin
 * with # say nothing.
 * One thread an object. */
#include "pipeline/raster/raster_file.h"

#define PB_SCENE_LIST_BYTES_MAX (1024 * 1024)
#define PB_SCENE_LIST_MAX       4096

struct pb_scene_list_line {
    const char *name;
    int line; /* of the file, from 1 */
};

struct pb_scene_list {
    char *text; /* what the names are parts of */
    struct pb_scene_list_line *one;
    size_t n;
};

/* Reads an open file. input.metadata_invalid: it is too large, is no text, or names nothing;
 * input.io, memory. *out needs fini in any case. */
int pb_scene_list_read(struct pb_raster_file *file, struct pb_err *err, struct pb_scene_list *out);
void pb_scene_list_fini(struct pb_scene_list *list);
/* Whether the line means the file of that path inside the scene. */
bool pb_scene_list_means(const struct pb_scene_list_line *line, const char *path);
#endif
