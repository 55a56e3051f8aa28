/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_counted.h"

#include "config/base/base_name.h"
#include "config/group_pattern.h"
#include "config/input_config.h"
#include "pipeline/scene/sidecar_names.h"

#include <stdlib.h>
#include <string.h>

struct counted {
    const struct pb_scene_entry *entry;
    char date[PB_GROUP_DATE_BYTES];
};

static int by_name(const void *a, const void *b)
{
    const struct counted *left = a, *right = b;
    int order = strcmp(pb_base_name(left->entry->path), pb_base_name(right->entry->path));
    return order != 0 ? order : strcmp(left->entry->path, right->entry->path);
}

static int by_date(const void *a, const void *b)
{
    const struct counted *left = a, *right = b;
    int order = strcmp(left->date, right->date);
    return order != 0 ? order : by_name(a, b);
}

/* Returns true for the file x_B4.tif: "*_B4.*" also matches x_B4.tif.aux.xml, but means only the
 * first. */
static bool is_main(const struct counted *file, size_t n, size_t i)
{
    bool is = true;
    for (size_t k = 0; k < n && is; k++)
        is = k == i || !pb_sidecar_is_any_of(pb_base_name(file[k].entry->path), NULL, 0, true,
                                             pb_base_name(file[i].entry->path));
    return is;
}

/* Sorts the files that are not sidecars; returns their count. */
static size_t sort(const struct pb_input_config *input, struct counted *file, size_t n)
{
    const bool dated = pb_files_by_date(input->order);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (is_main(file, n, i))
            file[kept++].entry = file[i].entry;
    for (size_t i = 0; i < kept && dated; i++)
        pb_group_pattern_date(input->group_pattern, pb_base_name(file[i].entry->path),
                              file[i].date);
    qsort(file, kept, sizeof *file, dated ? by_date : by_name);
    return kept;
}

int pb_scene_counted_list(const struct pb_input_config *input, const struct pb_scene_walk *walk,
                          const char *folder, const char *pattern, struct pb_err *err,
                          const struct pb_scene_entry ***out_entries, size_t *out_n)
{
    const bool down = pb_files_from_the_last(input->order);
    struct counted *file = calloc(walk->n + 1, sizeof *file);
    const struct pb_scene_entry **entries = calloc(walk->n + 1, sizeof *entries);
    size_t n = 0;
    for (size_t i = 0; file != NULL && i < walk->n; i++)
        if (pb_scene_walk_fits(pattern, walk->entry[i].path))
            file[n++].entry = &walk->entry[i];
    if (file == NULL || entries == NULL) {
        free(file);
        free(entries);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
    }
    n = sort(input, file, n);
    for (size_t i = 0; i < n; i++)
        entries[i] = file[down ? n - 1 - i : i].entry;
    free(file);
    *out_entries = entries;
    *out_n = n;
    return 0;
}

bool pb_scene_counted_is_metadata(const char *pattern, const char *scene, const char *file,
                                  const char *path)
{
    const bool whole = strchr(pattern, '/') != NULL;
    return pb_metadata_is_of(pattern, scene, whole ? file : pb_base_name(file),
                             whole ? path : pb_base_name(path));
}
