/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_order_list.h"

#include "pipeline/scene/scene_list.h"

#include <math.h>
#include <string.h>

/* Sets the number of the files that the line names. */
static int take_line(const struct pb_ordering *o, const struct pb_scene_list *list, size_t k)
{
    const char *path = o->files->list.path, *first = NULL;
    const struct pb_scene_list_line *line = &list->one[k];
    for (size_t i = 0; i < o->n; i++) {
        struct pb_order_candidate *c = &o->one[i];
        if (!pb_scene_list_means(line, c->said.file))
            continue;
        if (first != NULL && strcmp(first, c->said.file) != 0)
            return pb_fail_at(o->err, PB_E_INPUT_AMBIGUOUS, path, line->line, 0,
                              "%.120s and %.120s have that name; write the path inside the scene",
                              first, c->said.file);
        if (!isnan(c->key))
            return pb_fail_at(o->err, PB_E_INPUT_METADATA_INVALID, path, line->line, 0,
                              "it lists %.200s for the second time", line->name);
        first = c->said.file;
        c->key = (double)k + 1;
    }
    if (first != NULL)
        return 0;
    return pb_fail_at(o->err, PB_E_INPUT_INCOMPLETE, path, line->line, 0,
                      "it lists %.200s, which is no file of the scene that input.files counts",
                      line->name);
}

static size_t listed(const struct pb_ordering *o, const char *match)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        n += strcmp(o->one[i].said.match, match) == 0 && !isnan(o->one[i].key) ? 1 : 0;
    return n;
}

/* Checks that each observation has all bands: else files of one number would be of different ones.
 */
static int check_numbers(const struct pb_ordering *o)
{
    const char *first = o->n > 0 ? o->one[0].said.match : "";
    const size_t n = listed(o, first);
    for (size_t i = 1; i < o->n; i++) {
        const char *other = o->one[i].said.match;
        const size_t m = listed(o, other);
        if (m != n)
            return pb_fail_at(o->err, PB_E_INPUT_METADATA_CONFLICT, o->files->list.path, 0, 0,
                              "it lists %zu files of %.80s and %zu of %.80s, so those of one "
                              "number would not belong together",
                              n, first, m, other);
    }
    return 0;
}

int pb_run_order_list(const struct pb_ordering *o)
{
    struct pb_scene_list list;
    struct pb_raster_file file = o->files->list; /* descriptor and path stay the owner's */
    int rc = pb_scene_list_read(&file, o->err, &list);
    for (size_t k = 0; k < list.n && rc == 0; k++)
        rc = take_line(o, &list, k);
    pb_scene_list_fini(&list);
    return rc ? rc : check_numbers(o);
}
