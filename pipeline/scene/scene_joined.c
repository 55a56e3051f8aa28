/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_joined.h"

#include "pipeline/io/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int no_memory(const char *folder, struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
}

static bool has(const struct pb_scene_walk *walk, const char *path)
{
    bool found = false;
    for (size_t i = 0; i < walk->n && !found; i++)
        found = strcmp(walk->entry[i].path, path) == 0;
    return found;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct pb_scene_entry *)a)->path,
                  ((const struct pb_scene_entry *)b)->path);
}

/* Moves the entries of a joined folder whose paths are new; the others stay there. */
static int take_entries(struct pb_scene_walk *walk, struct pb_scene_walk *from, struct pb_err *err)
{
    size_t left = 0;
    struct pb_scene_entry *more = realloc(walk->entry, (walk->n + from->n + 1) * sizeof *more);
    if (more == NULL)
        return no_memory(from->folder, err);
    walk->entry = more;
    walk->room = walk->n + from->n + 1;
    for (size_t i = 0; i < from->n; i++) {
        struct pb_scene_entry *entry = &from->entry[i];
        if (has(walk, entry->path)) {
            from->entry[left++] = *entry;
            continue;
        }
        walk->entry[walk->n] = *entry;
        walk->entry[walk->n++].joined = from;
    }
    from->n = left;
    return 0;
}

static int join(struct pb_scene_walk *walk, const char *folder, struct pb_err *err)
{
    struct pb_scene_walk *from = &walk->joined[walk->n_joined];
    if (access(folder, F_OK) != 0)
        return 0;
    int rc = pb_scene_walk_open(folder, err, from);
    walk->n_joined++;
    if (rc == 0 && pb_scene_walk_rest(from, folder) != 0)
        rc = no_memory(folder, err);
    return rc ? rc : take_entries(walk, from, err);
}

/* Nothing is made of less than before. */
static int check(const struct pb_scene_joined *joined, const char *folder,
                 const struct pb_scene_walk *walk, struct pb_err *err)
{
    size_t n_gone = 0;
    const char *first = NULL;
    for (size_t i = 0; i < joined->n_files; i++) {
        if (has(walk, joined->file[i]))
            continue;
        first = first ? first : joined->file[i];
        n_gone++;
    }
    if (n_gone == 0)
        return 0;
    return pb_fail_at(err, PB_E_INPUT_GONE, folder, 0, 0,
                      "it joins the scene that job %s made, and %zu of the %zu files of that %s in "
                      "the archive no more: %.200s%s",
                      joined->by, n_gone, joined->n_files, n_gone == 1 ? "is" : "are", first,
                      n_gone > 1 ? " and others" : "");
}

int pb_scene_joined_add(const struct pb_scene_joined *joined, const char *folder,
                        struct pb_scene_walk *walk, struct pb_err *err)
{
    int rc = 0;
    walk->joined = calloc(joined->n_folders + 1, sizeof *walk->joined);
    if (walk->joined == NULL)
        return no_memory(folder, err);
    for (size_t i = 0; i < joined->n_folders && rc == 0; i++)
        rc = join(walk, joined->folder[i], err);
    if (rc == 0 && walk->n > 0)
        qsort(walk->entry, walk->n, sizeof *walk->entry, by_path);
    return rc ? rc : check(joined, folder, walk, err);
}

const char *pb_scene_joined_inner(const struct pb_scene_walk *walk, const char *folder,
                                  const char *path)
{
    const char *inner = pb_path_below(path, folder);
    for (size_t i = 0; inner == NULL && i < walk->n_joined; i++)
        inner = pb_path_below(path, walk->joined[i].folder);
    return inner != NULL ? inner : path;
}
