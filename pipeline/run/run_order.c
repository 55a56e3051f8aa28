/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_order.h"

#include "config/base/base_name.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/metadata/meta_time.h"
#include "pipeline/run/file_facts.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene_search.h"
#include "pipeline/scene/scene_files.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files of a scene while they are renumbered. */
struct candidate {
    struct pb_observation said;
    const struct pb_raster_file *file; /* open; one of the files in name order */
    int32_t page;                      /* value of page in struct pb_file_config */
    double key;                        /* the least is first; NaN: after all others */
};

struct ordering {
    const struct pb_run_options *options;
    const struct pb_input_config *input;
    const struct pb_scene_files *files; /* in name order */
    struct pb_err *err;
    struct candidate *one; /* an element for each pattern that a file matches */
    size_t n;
};

/* match_of: pattern of file i; nth_of: its number; page_of: its page. */
static const char *match_of(const struct pb_input_config *input, size_t i)
{
    return i == 0 ? input->file : input->sources[i - 1].file;
}

static int32_t nth_of(const struct pb_input_config *input, size_t i)
{
    return i == 0 ? input->file_nth : input->sources[i - 1].nth;
}

static int32_t page_of(const struct pb_input_config *input, size_t i)
{
    return i == 0 ? input->file_page : input->sources[i - 1].page;
}

static int no_memory(const struct ordering *o)
{
    return pb_fail(o->err, PB_E_MEMORY, "out of memory for the files of %s", o->files->folder);
}

/* --- facts of each file -----------------------------------------------------------------------*/

/* Copies the open metadata files of the file at `path` to out; returns their count. */
static size_t metadata_of(const struct ordering *o, const char *path,
                          struct pb_raster_file out[PB_METADATA_FILES_MAX])
{
    size_t n = 0;
    for (size_t p = 0; p < o->input->n_metadata; p++)
        for (size_t i = 0; i < o->files->metadata.n && n < PB_METADATA_FILES_MAX; i++) {
            const struct pb_raster_file *file = &o->files->metadata.file[i];
            const char *inner = pb_scene_files_inner(o->files, file->path);
            if (pb_scene_counted_is_metadata(o->input->metadata[p], o->files->scene, path, inner))
                out[n++] = *file; /* descriptor and path stay the owner's */
        }
    return n;
}

static int look(const struct ordering *o, struct candidate *c)
{
    const bool by_cloud = o->input->order == PB_FILES_BY_CLOUD;
    const struct pb_file_wants wants = {.cloud = by_cloud, .date = !by_cloud, .page = c->page};
    struct pb_raster_file own[PB_METADATA_FILES_MAX];
    struct pb_file_facts facts;
    const size_t n = metadata_of(o, c->said.file, own);
    int rc =
        pb_file_facts_read(own, n, c->file, &o->options->config->limits, &wants, &facts, o->err);
    c->said.cloud_cover = facts.cloud_cover;
    (void)snprintf(c->said.datetime, sizeof c->said.datetime, "%s", facts.datetime);
    return rc;
}

/* Adds a file that matches pattern i, once. */
static void add(struct ordering *o, const struct pb_raster_file *file, size_t i)
{
    const char *match = match_of(o->input, i);
    const char *inner = pb_scene_files_inner(o->files, file->path);
    for (size_t k = 0; k < o->n; k++)
        if (strcmp(o->one[k].said.match, match) == 0 && strcmp(o->one[k].said.file, inner) == 0)
            return;
    struct candidate *c = &o->one[o->n++];
    *c = (struct candidate){.said = {.file = inner, .match = match, .cloud_cover = NAN},
                            .file = file,
                            .page = page_of(o->input, i),
                            .key = NAN};
}

static int add_spares(struct ordering *o, size_t pattern)
{
    char filled[PATH_MAX];
    int rc = pb_scene_search_pattern(match_of(o->input, pattern), o->files->scene, filled, o->err);
    for (size_t i = 0; i < o->files->n_spare && rc == 0; i++) {
        const struct pb_raster_file *file = &o->files->file[o->files->n + i];
        if (pb_scene_walk_fits(filled, pb_scene_files_inner(o->files, file->path)))
            add(o, file, pattern);
    }
    return rc;
}

/* Adds all counted files that are open. */
static int gather(struct ordering *o)
{
    const size_t most = (o->files->n + 1) * (o->files->n_spare + 1) + o->files->n;
    int rc = 0;
    o->one = calloc(most, sizeof *o->one);
    if (o->one == NULL)
        return no_memory(o);
    for (size_t i = 0; i < o->files->n && rc == 0; i++) {
        if (nth_of(o->input, i) == 0 || o->files->file[i].fd < 0)
            continue;
        add(o, &o->files->file[i], i);
        rc = add_spares(o, i);
    }
    return rc;
}

static int look_at_all(struct ordering *o)
{
    int rc = 0;
    for (size_t i = 0; i < o->n && rc == 0; i++) {
        rc = look(o, &o->one[i]);
        o->one[i].key = o->one[i].said.cloud_cover;
    }
    return rc;
}

/* --- order -------------------------------------------------------------------------------------*/

/* --- a list of the scene
 * -------------------------------------------------------------------------- */

/* Sets the number of the files that the line names. */
static int take_line(const struct ordering *o, const struct pb_scene_list *list, size_t k)
{
    const char *path = o->files->list.path, *first = NULL;
    const struct pb_scene_list_line *line = &list->one[k];
    for (size_t i = 0; i < o->n; i++) {
        struct candidate *c = &o->one[i];
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

static size_t listed(const struct ordering *o, const char *match)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        n += strcmp(o->one[i].said.match, match) == 0 && !isnan(o->one[i].key) ? 1 : 0;
    return n;
}

/* Checks that each observation has all bands: else files of one number would be of different ones.
 */
static int check_numbers(const struct ordering *o)
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

/* For input.order: list. Sets key: the line number among the lines that name files, from 1, or NaN.
 * Fails with
 *
 *  - input.incomplete: it lists a file that is absent, or that matches no pattern with nth
 *  - input.metadata_invalid: it lists a file twice
 *  - input.ambiguous: two files have the name
 *  - input.metadata_conflict: it lists different numbers of files of two patterns
 *
 * or an error of pb_scene_list_read. */
static int order_by_list(const struct ordering *o)
{
    struct pb_scene_list list;
    struct pb_raster_file file = o->files->list; /* descriptor and path stay the owner's */
    int rc = pb_scene_list_read(&file, o->err, &list);
    for (size_t k = 0; k < list.n && rc == 0; k++)
        rc = take_line(o, &list, k);
    pb_scene_list_fini(&list);
    return rc ? rc : check_numbers(o);
}

static int by_key(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int order = strcmp(x->said.match, y->said.match);
    if (order == 0)
        order = (int)(isnan(x->key) != 0) - (int)(isnan(y->key) != 0);
    if (order == 0 && !isnan(x->key))
        order = (x->key > y->key) - (x->key < y->key);
    if (order == 0)
        order = strcmp(pb_base_name(x->said.file), pb_base_name(y->said.file));
    return order != 0 ? order : strcmp(x->said.file, y->said.file);
}

static void count(struct ordering *o)
{
    qsort(o->one, o->n, sizeof *o->one, by_key);
    for (size_t i = 0; i < o->n; i++) {
        const bool goes_on = i > 0 && strcmp(o->one[i].said.match, o->one[i - 1].said.match) == 0;
        const bool counts = o->input->order == PB_FILES_BY_CLOUD || !isnan(o->one[i].key);
        o->one[i].said.nth = !counts ? 0 : goes_on ? o->one[i - 1].said.nth + 1 : 1;
    }
}

static struct candidate *find(const struct ordering *o, const char *match, int32_t nth)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->one[i].said.nth == nth && strcmp(o->one[i].said.match, match) == 0)
            return &o->one[i];
    return NULL;
}

/* Refuses to order several files without any known cloud cover. */
static int check_said(const struct ordering *o)
{
    size_t n_said = 0;
    bool several = false;
    for (size_t i = 0; i < o->n; i++) {
        n_said += isnan(o->one[i].said.cloud_cover) ? 0 : 1;
        several = several || o->one[i].said.nth > 1;
    }
    if (n_said > 0 || !several)
        return 0;
    return pb_fail_at(o->err, PB_E_INPUT_METADATA_MISSING, o->files->folder, 0, 0,
                      "input.order is cloud, but the cloud cover of its files is unknown: neither "
                      "%s nor metadata in the files (CLOUDCOVER, domain IMAGERY) have it",
                      o->input->n_metadata > 0 ? "the files of input.metadata"
                                               : "input.metadata, which is not set,");
}

/* True if all facts known of both are equal; times may differ by an hour, as within the metadata of
 * one scene. */
static bool are_alike(const struct pb_observation *a, const struct pb_observation *b)
{
    const double hours =
        24 * fabs(pb_meta_julian_day(a->datetime) - pb_meta_julian_day(b->datetime));
    const bool same_cover =
        a->cloud_cover == b->cloud_cover || (isnan(a->cloud_cover) && isnan(b->cloud_cover));
    return same_cover && !(hours > 1);
}

/* Files of one number and different patterns are bands of one observation: their facts must be
 * equal. */
static int check_pairs(const struct ordering *o)
{
    for (size_t i = 0; i < o->n; i++)
        for (size_t k = i + 1; k < o->n; k++) {
            const struct pb_observation *a = &o->one[i].said, *b = &o->one[k].said;
            if (a->nth != b->nth || are_alike(a, b))
                continue;
            return pb_fail_at(o->err, PB_E_INPUT_METADATA_CONFLICT, o->files->folder, 0, 0,
                              "by their cloud cover %.90s and %.90s are both number %d, but their "
                              "metadata are of different observations: is a file of one missing?",
                              a->file, b->file, a->nth);
        }
    return 0;
}

static int decide(struct ordering *o)
{
    const bool by_cloud = o->input->order == PB_FILES_BY_CLOUD;
    int rc = by_cloud ? look_at_all(o) : order_by_list(o);
    if (rc < 0)
        return rc;
    count(o);
    rc = by_cloud ? check_said(o) : 0;
    return rc == 0 && by_cloud ? check_pairs(o) : rc;
}

/* --- files in the new order -------------------------------------------------------------------*/

static int too_few(const struct ordering *o, size_t i)
{
    return pb_fail_at(o->err, PB_E_INPUT_INCOMPLETE, o->files->list.path, 0, 0,
                      "it lists fewer than %d files of %.150s", (int)nth_of(o->input, i),
                      match_of(o->input, i));
}

static int place(const struct ordering *o, struct pb_scene_files *out)
{
    int rc = 0;
    for (size_t i = 0; i < out->n && rc == 0; i++) {
        const struct pb_raster_file *file = &o->files->file[i];
        const int32_t nth = nth_of(o->input, i);
        struct candidate *c = nth > 0 ? find(o, match_of(o->input, i), nth) : NULL;
        if (file->fd < 0)
            continue;
        if (nth > 0 && c == NULL && i > 0 && o->input->sources[i - 1].optional)
            continue; /* the list is shorter: the band is valid nowhere */
        if (nth > 0 && c == NULL)
            return too_few(o, i);
        if (c != NULL) {
            c->said.is_used = true;
            file = c->file;
        }
        rc = pb_raster_file_again(&out->file[i], file, o->err);
    }
    return rc;
}

/* Adds the other files, which were examined as well. */
static int place_spares(const struct ordering *o, struct pb_scene_files *out)
{
    int rc = 0;
    for (size_t i = 0; i < o->n && rc == 0; i++) {
        const struct pb_raster_file *file = o->one[i].file;
        bool is_there = false;
        for (size_t k = 0; k < out->n + out->n_spare && !is_there; k++)
            is_there = out->file[k].path != NULL && strcmp(out->file[k].path, file->path) == 0;
        if (!is_there)
            rc = pb_raster_file_again(&out->file[out->n + out->n_spare++], file, o->err);
    }
    return rc;
}

static int keep_observations(const struct ordering *o, struct pb_observations *out)
{
    out->one = calloc(o->n + 1, sizeof *out->one);
    if (out->one == NULL)
        return no_memory(o);
    for (size_t i = 0; i < o->n; i++)
        out->one[i] = o->one[i].said;
    out->n = o->n;
    out->order = o->input->order;
    return 0;
}

/* Observations of files that keep their order by name, with the facts of their metadata. */
static int observe(struct ordering *o, struct pb_observations *out)
{
    int rc = gather(o);
    rc = rc ? rc : look_at_all(o);
    for (size_t i = 0; rc == 0 && i < o->n; i++) {
        struct pb_observation *said = &o->one[i].said;
        said->is_used = true;
        for (size_t k = 0; k < o->files->n; k++)
            if (o->one[i].file == &o->files->file[k])
                said->nth = nth_of(o->input, k);
    }
    pb_scene_files_hand(o->files); /* restores the first file: another one was registered as it */
    return rc ? rc : keep_observations(o, out);
}

int pb_run_order_make(struct pb_run_order *order, struct pb_run_options *options,
                      struct pb_err *err)
{
    const struct pb_input_config *input = &options->pipeline->input;
    const struct pb_scene_files *files = pb_scene_several(options->input);
    struct ordering o = {.options = options, .input = input, .files = files, .err = err};
    *order = (struct pb_run_order){.given = NULL};
    if (files == NULL || (!pb_files_by_content(input->order) && !input->metadata_each))
        return 0;
    if (!pb_files_by_content(input->order)) {
        int observed = observe(&o, &order->observations);
        free(o.one);
        if (observed < 0)
            pb_scene_files_blame(files, err);
        return observed;
    }
    order->given = options->input;
    order->scene = *options->input;
    for (size_t i = 0; i < PB_SCENE_FILES_MAX; i++)
        order->scene.files.file[i] = (struct pb_raster_file){.fd = -1};
    order->scene.files.n_spare = 0;
    int rc = gather(&o);
    rc = rc ? rc : decide(&o);
    rc = rc ? rc : place(&o, &order->scene.files);
    rc = rc ? rc : place_spares(&o, &order->scene.files);
    rc = rc ? rc : keep_observations(&o, &order->observations);
    free(o.one);
    if (rc < 0) {
        pb_scene_files_blame(files, err);
        return rc;
    }
    options->input = &order->scene;
    pb_scene_hand(&order->scene);
    return 0;
}

void pb_run_order_fini(struct pb_run_order *order)
{
    for (size_t i = 0; order->given != NULL && i < PB_SCENE_FILES_MAX; i++)
        pb_raster_file_close(&order->scene.files.file[i]);
    if (order->given != NULL)
        pb_scene_hand(order->given);
    free(order->observations.one);
    *order = (struct pb_run_order){.given = NULL};
}
