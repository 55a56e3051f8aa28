/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_list.h"

#include "config/base/base_name.h"

#include <stdlib.h>
#include <string.h>

static int invalid(const struct pb_raster_file *file, int line, const char *why, struct pb_err *err)
{
    return pb_fail_at(err, PB_E_INPUT_METADATA_INVALID, file->path, line, 0, "%s", why);
}

/* Reads the complete file and appends a NUL. */
static int load(struct pb_raster_file *file, struct pb_err *err, struct pb_scene_list *out)
{
    if (file->bytes > PB_SCENE_LIST_BYTES_MAX)
        return invalid(file, 0, "it is larger than 1 MiB, and was to list files", err);
    const size_t bytes = (size_t)file->bytes;
    out->text = malloc(bytes + 1);
    out->one = calloc(PB_SCENE_LIST_MAX, sizeof *out->one);
    if (out->text == NULL || out->one == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to read %s", file->path);
    ssize_t n = pb_raster_file_read(file, 0, out->text, bytes);
    if (n < 0)
        return pb_raster_file_check(file, err);
    out->text[n] = '\0';
    return memchr(out->text, '\0', (size_t)n) == NULL
               ? 0
               : invalid(file, 0, "it is no text, and was to list files", err);
}

/* Removes blanks around the line, and terminates it. */
static char *trim(char *line)
{
    line += strspn(line, " \t");
    size_t n = strlen(line);
    while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL)
        line[--n] = '\0';
    return line;
}

int pb_scene_list_read(struct pb_raster_file *file, struct pb_err *err, struct pb_scene_list *out)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark of UTF-8 */
    *out = (struct pb_scene_list){.n = 0};
    int rc = load(file, err, out), line = 0;
    char *next = rc == 0 ? out->text : NULL;
    if (next != NULL && strncmp(next, mark, sizeof mark - 1) == 0)
        next += sizeof mark - 1;
    for (char *text; rc == 0 && (text = strsep(&next, "\n")) != NULL;) {
        text = trim(text);
        line++;
        if (text[0] == '\0' || text[0] == '#')
            continue;
        text += strncmp(text, "./", 2) == 0 ? 2 : 0; /* allows names that begin with # or a blank */
        if (text[0] == '\0')
            rc = invalid(file, line, "it lists ./, which is no file", err);
        else if (out->n == PB_SCENE_LIST_MAX)
            rc = invalid(file, line, "it lists more files than a scene has", err);
        else
            out->one[out->n++] = (struct pb_scene_list_line){text, line};
    }
    return rc == 0 && out->n == 0 ? invalid(file, 0, "it lists no file", err) : rc;
}

void pb_scene_list_fini(struct pb_scene_list *list)
{
    free(list->text);
    free(list->one);
    *list = (struct pb_scene_list){.n = 0};
}

bool pb_scene_list_means(const struct pb_scene_list_line *line, const char *path)
{
    return strcmp(line->name, strchr(line->name, '/') != NULL ? path : pb_base_name(path)) == 0;
}
