/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_sources.h"

#include "config/base/base_name.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/values.h"
#include "pipeline/raster/polygon_mask.h"
#include "pipeline/raster/source_files.h"
#include "pipeline/run/run_columns.h"
#include "pipeline/sar/sar_tables.h"
#include "pipeline/scene/scene.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pb_input_config *input_of(const struct pb_run_sources *s)
{
    return &s->options->pipeline->input;
}

/* NULL: the scene is one file. */
static const struct pb_scene_files *files_of(const struct pb_run_sources *s)
{
    return pb_scene_several(s->options->input);
}

int pb_run_sources_blame(const struct pb_run_sources *s, int rc, struct pb_err *err)
{
    if (rc < 0 && files_of(s) != NULL)
        pb_scene_files_blame(files_of(s), err);
    if (rc < 0)
        pb_source_files_blame(s->options->config, s->options->pipeline, s->scene, err);
    return rc;
}

/* --- place of the scene's files --------------------------------------------------------------*/

static const char *inner_of(const struct pb_run_sources *s, size_t file)
{
    return pb_scene_files_inner(files_of(s), files_of(s)->file[file].path);
}

/* Name of one of the scene's files, or of a file outside the scene. */
static const char *name_of(const struct pb_run_sources *s, size_t file)
{
    const struct pb_run_options *o = s->options;
    const struct pb_source_config *source = file > 0 ? &o->pipeline->input.sources[file - 1] : NULL;
    if (source != NULL && !source->of_scene)
        return source->file;
    return pb_scene_several(o->input) != NULL ? inner_of(s, file)
                                              : pb_base_name(o->name ? o->name : o->input->path);
}

void pb_run_sources_pages(const struct pb_run_sources *s, char *text, size_t bytes)
{
    size_t n = 0, first = 0;
    text[0] = '\0';
    for (size_t i = PB_FILES_MAX; i-- > 0;)
        if (s->raster[i] != NULL && pb_raster_info(s->raster[i])->n_pages_more > 0) {
            n++;
            first = i;
        }
    if (n == 0)
        return;
    const int32_t more = pb_raster_info(s->raster[first])->n_pages_more;
    const char *name = name_of(s, first);
    char others[60] = "";
    if (n > 1)
        (void)snprintf(others, sizeof others, "; %zu more file%s as well", n - 1,
                       n > 2 ? "s have pages" : " has pages");
    (void)snprintf(text, bytes, "%.200s has %d pages, and only the first is read%s; %s", name,
                   more + 1, others,
                   files_of(s) != NULL || first > 0
                       ? "input.files reads others: {N: {match: \"*.tif\", page: 2}}"
                       : "others are read with pages: all in input, if each has one band");
}

static const char *crs_of(const struct pb_raster_info *info)
{
    return info->crs_code[0] != '\0' ? info->crs_code
           : info->has_crs           ? "a coordinate system without a code"
                                     : "no coordinate system";
}

static int32_t page_of(const struct pb_run_sources *s, size_t file)
{
    return file > 0 ? input_of(s)->sources[file - 1].page : input_of(s)->file_page;
}

/* Returns "B04.tif", or "page 2 of B04.tif" in text. */
static const char *part_of(const struct pb_run_sources *s, size_t file, char *text, size_t bytes)
{
    const int32_t page = page_of(s, file);
    if (page <= 0)
        return inner_of(s, file);
    (void)snprintf(text, bytes, "page %d of %s", page, inner_of(s, file));
    return text;
}

static int elsewhere(const struct pb_run_sources *s, size_t file, struct pb_err *err)
{
    char text[2][300];
    const struct pb_raster_info *a = pb_raster_info(s->raster[0]),
                                *b = pb_raster_info(s->raster[file]);
    const char *name = part_of(s, file, text[0], sizeof text[0]),
               *first = part_of(s, 0, text[1], sizeof text[1]);
    if (!pb_raster_same_crs(s->raster[0], s->raster[file]))
        return pb_fail_at(err, PB_E_INPUT_GRID, files_of(s)->folder, 0, 0,
                          "%s has %s, and %s, whose grid is the scene's, %s", name, crs_of(b),
                          first, crs_of(a));
    if (a->has_transform && b->has_transform)
        return pb_fail_at(err, PB_E_INPUT_GRID, files_of(s)->folder, 0, 0,
                          "the axes of %s are not parallel to those of %s, whose grid is the "
                          "scene's",
                          name, first);
    return pb_fail_at(err, PB_E_INPUT_GRID, files_of(s)->folder, 0, 0,
                      "%s has no geotransform and %d x %d pixels, where %s, whose grid is the "
                      "scene's, has %d x %d",
                      a->has_transform ? name : first, b->width, b->height,
                      a->has_transform ? first : name, a->width, a->height);
}

static bool meets(double offset, double scale, int32_t own, int32_t other)
{
    return offset < other && offset + scale * own > 0;
}

/* Returns true if a step joins files side by side. */
static bool joins(const struct pb_pipeline_config *pipeline)
{
    bool found = false;
    for (size_t i = 0; i < pipeline->n_steps && !found; i++)
        found = pipeline->steps[i].op->joins;
    return found;
}

/* Checks that a file of the scene overlaps the grid, unless a step joins files. */
static int check_place(const struct pb_run_sources *s, size_t file, struct pb_err *err)
{
    const struct pb_plan_other *other = &s->others[file - 1];
    const struct pb_raster_info *a = pb_raster_info(s->raster[0]), *b = other->info;
    const struct pb_map *m = &other->map;
    char text[2][300];
    if (!other->config->of_scene)
        return 0;
    if (!other->placed)
        return elsewhere(s, file, err);
    if (joins(s->options->pipeline) || (meets(m->offset_x, m->scale_x, a->width, b->width) &&
                                        meets(m->offset_y, m->scale_y, a->height, b->height)))
        return 0;
    return pb_fail_at(
        err, PB_E_INPUT_GRID, files_of(s)->folder, 0, 0,
        "%s does not overlap %s, whose grid is the scene's: they have no pixel in common",
        part_of(s, file, text[0], sizeof text[0]), part_of(s, 0, text[1], sizeof text[1]));
}

/* --- pages of the scene's file --------------------------------------------------------------*/

/* Checks a page for each band: one band, the size of the first one, and its place. A page without
 * georeference has the first one's. */
static int check_page(const struct pb_run_sources *s, size_t file, struct pb_err *err)
{
    const struct pb_raster_info *a = pb_raster_info(s->raster[0]),
                                *b = pb_raster_info(s->raster[file]);
    const struct pb_map identity = pb_map_identity();
    const char *path = s->options->input->path;
    const int32_t page = page_of(s, file), first = page_of(s, 0);
    struct pb_map map;
    if (b->n_bands != 1)
        return pb_fail_at(
            err, PB_E_PIPELINE_BAND, path, 0, 0,
            "page %d has %d bands, and input.pages: all reads pages of one band; "
            "name page and band in input.files: {%s: {match: \"*.tif\", page: %d, "
            "band: 1}}",
            page, b->n_bands,
            file > 0 ? input_of(s)->sources[file - 1].name : input_of(s)->bands[0].name, page);
    if (a->width != b->width || a->height != b->height)
        return pb_fail_at(err, PB_E_INPUT_GRID, path, 0, 0,
                          "page %d has %d x %d pixels, and page %d %d x %d: pages that are bands "
                          "(input.pages) have one size; name them in input.bands",
                          page, b->width, b->height, first, a->width, a->height);
    if (b->has_transform && !a->has_transform)
        return pb_fail_at(err, PB_E_INPUT_GRID, path, 0, 0,
                          "page %d has a geotransform, but page %d, whose grid is the scene's, "
                          "lacks it; name the band of page %d first in input.bands",
                          page, first, page);
    if (b->has_transform &&
        (!pb_source_place(s->raster[0], s->raster[file], &map) || !pb_map_equal(&map, &identity)))
        return pb_fail_at(err, PB_E_INPUT_GRID, path, 0, 0,
                          "page %d is at another place than page %d: pages that are bands "
                          "(input.pages) have one grid",
                          page, first);
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------*/

/* Makes facts for a file that is not read: bands on the scene's grid. */
static void stand_in(struct pb_run_sources *s, size_t i)
{
    const struct pb_source_config *config = &input_of(s)->sources[i];
    struct pb_raster_info *info = &s->stand_in[i];
    *info = *pb_raster_info(s->raster[0]);
    info->n_bands = 1;
    info->has_mask = info->top_down = false;
    memset(info->band, 0, sizeof info->band);
    for (size_t b = 0; b < config->n_bands; b++)
        if (config->bands[b].index > info->n_bands)
            info->n_bands = config->bands[b].index;
    s->others[i].info = info;
    s->others[i].is_absent = config->optional;
    s->others[i].placed = true;
    s->others[i].map = pb_map_identity();
}

static int choose_complex(struct pb_run_sources *s, size_t i, struct pb_err *err)
{
    const struct pb_input_config *input = input_of(s);
    const struct pb_source_config *other = i > 0 ? &input->sources[i - 1] : NULL;
    const struct pb_complex_choice choice = {
        .is_given = other ? other->has_complex : input->has_complex,
        .as = (enum pb_complex_as)(other ? other->complex : input->complex),
        .has_nodata = other ? other->has_nodata : input->has_nodata,
        .nodata = other ? other->nodata : input->nodata,
    };
    return pb_raster_choose_complex(s->raster[i], &choice, err);
}

/* No-op if the file is open already. */
static int open_file(struct pb_run_sources *s, size_t file, const char *path, struct pb_err *err)
{
    return s->raster[file] != NULL
               ? 0
               : pb_raster_open_page(path, page_of(s, file), &s->options->config->limits, err,
                                     &s->raster[file]);
}

/* Opens the page with the highest number first: its error has both numbers for a file that is too
 * short. */
static int open_last_page(struct pb_run_sources *s, struct pb_err *err)
{
    size_t last = 0;
    for (size_t i = 0; i < input_of(s)->n_sources; i++)
        if (page_of(s, i + 1) > page_of(s, last))
            last = i + 1;
    return input_of(s)->pages ? open_file(s, last, s->options->input->path, err) : 0;
}

static int open_other(struct pb_run_sources *s, size_t i, struct pb_err *err)
{
    const bool is_page = input_of(s)->pages && input_of(s)->sources[i].of_scene;
    const struct pb_source_config *config = &input_of(s)->sources[i];
    struct pb_plan_other *other = &s->others[i];
    char path[PATH_MAX];
    int rc = 0;
    other->config = config;
    if (config->of_scene && !is_page && files_of(s)->file[i + 1].fd < 0) {
        stand_in(s, i);
        return 0;
    }
    if (config->of_scene)
        (void)snprintf(path, sizeof path, "%s",
                       is_page ? s->options->input->path : files_of(s)->file[i + 1].path);
    else
        rc = pb_source_path(s->options->config, config, s->scene, path, err);
    rc = rc ? rc : open_file(s, i + 1, path, err);
    if (rc < 0)
        return rc;
    pb_raster_choose_valid(s->raster[i + 1], (enum pb_valid)input_of(s)->valid, config->bands,
                           config->n_bands);
    rc = choose_complex(s, i + 1, err);
    if (rc < 0)
        return rc;
    other->raster = s->raster[i + 1];
    other->info = pb_raster_info(s->raster[i + 1]);
    if (is_page) {
        other->placed = true;
        other->map = pb_map_identity();
        return check_page(s, i + 1, err);
    }
    other->placed = pb_source_place(s->raster[0], s->raster[i + 1], &other->map);
    return check_place(s, i + 1, err);
}

/* --- tables of the metadata ------------------------------------------------------------------*/

static int make_tables(struct pb_run_sources *s, struct pb_err *err)
{
    const struct pb_pipeline_config *pipeline = s->options->pipeline;
    const struct pb_raster_info *info = pb_raster_info(s->raster[0]);
    const size_t at = input_of(s)->n_sources; /* index among the others */
    const int32_t n = pb_plan_tables(pipeline);
    if (n == 0)
        return 0;
    s->tables = calloc(1, sizeof *s->tables);
    if (s->tables == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the tables that calibrate");
    if (at + 1 >= PB_FILES_MAX || n > (int32_t)(sizeof s->tables->plane / sizeof *s->tables->plane))
        return pb_fail(err, PB_E_PIPELINE_BAND,
                       "pipeline %s takes %d tables for what it calibrates, and %zu files: up to "
                       "%zu, and %d files with them, are possible",
                       pipeline->name, n, at + 1,
                       sizeof s->tables->plane / sizeof *s->tables->plane, PB_FILES_MAX - 1);
    const struct pb_raster_made made = {.width = info->width,
                                        .height = info->height,
                                        .n_bands = n,
                                        .type = PB_F32,
                                        .fill = pb_sar_fill,
                                        .of = s->tables};
    int rc = pb_run_columns_read(s->options->config, pipeline, info->width, err, &s->columns);
    rc = rc ? rc : pb_raster_make(&made, err, &s->raster[at + 1]);
    if (rc == 0)
        s->others[at] = (struct pb_plan_other){.made_of = PB_MADE_OF_TABLES,
                                               .info = pb_raster_info(s->raster[at + 1]),
                                               .placed = true,
                                               .map = pb_map_identity()};
    return rc;
}

size_t pb_run_sources_others(const struct pb_run_sources *s)
{
    return input_of(s)->n_sources + (s->tables != NULL) + s->cuts;
}

int pb_run_sources_cut(struct pb_run_sources *s, const struct pb_polygon_masks *masks,
                       struct pb_err *err)
{
    const struct pb_raster_info *info = pb_raster_info(s->raster[0]);
    const size_t at = pb_run_sources_others(s); /* index among the others */
    if (masks == NULL)
        return 0;
    if (at + 1 >= PB_FILES_MAX)
        return pb_fail(
            err, PB_E_PIPELINE_BAND,
            "pipeline %s has a cutline and %zu files: with a cutline up to %d files are possible",
            s->options->pipeline->name, at + 1, PB_FILES_MAX - 1);
    const struct pb_raster_made made = {.width = info->width,
                                        .height = info->height,
                                        .n_bands = (int32_t)pb_polygon_masks_count(masks),
                                        .type = PB_U8,
                                        .fill = pb_polygon_masks_fill,
                                        .of = masks};
    int rc = pb_raster_make(&made, err, &s->raster[at + 1]);
    if (rc < 0)
        return rc;
    s->others[at] = (struct pb_plan_other){.made_of = PB_MADE_OF_POLYGONS,
                                           .info = pb_raster_info(s->raster[at + 1]),
                                           .placed = true,
                                           .map = pb_map_identity()};
    s->cuts = true;
    return 0;
}

/* The two planes of a band with a table for columns, in the order of its rule. */
static void add_columns(struct pb_run_sources *s, const struct pb_calibrated *c)
{
    s->tables->plane[s->tables->n++] =
        (struct pb_sar_plane){.column = pb_run_columns_gain(s->columns, c->step, c->entry)};
    s->tables->plane[s->tables->n++] =
        (struct pb_sar_plane){.column = pb_run_columns_dark(s->columns, c->step, c->entry)};
}

void pb_run_sources_calibrate(struct pb_run_sources *s, const struct pb_plan *plan,
                              const struct pb_metadata *facts)
{
    if (s->tables != NULL)
        s->tables->n = 0; /* the plans of all tiles have the same tables */
    for (size_t i = 0; s->tables != NULL && i < plan->work.n_calibrated; i++) {
        const struct pb_calibrated *c = &plan->work.calibrated[i];
        if (c->has_columns)
            add_columns(s, c);
        if (!c->rule.has_tables || c->has_columns)
            continue;
        const struct pb_sar_channel *channel = pb_sar_find(facts->sar, c->of);
        s->tables->plane[s->tables->n++] =
            (struct pb_sar_plane){channel, (int32_t)c->to - PB_QUANTITY_SIGMA0, NULL};
        if (c->rule.noise >= 0)
            s->tables->plane[s->tables->n++] = (struct pb_sar_plane){channel, -1, NULL};
    }
}

int pb_run_sources_open(struct pb_run_sources *s, const struct pb_run_options *options,
                        const char *scene, struct pb_err *err)
{
    const struct pb_scene_files *files = pb_scene_several(options->input);
    *s = (struct pb_run_sources){.options = options, .scene = scene};
    if (input_of(s)->n_files > 0 && files == NULL)
        return pb_fail_at(
            err, PB_E_INPUT_NO_PIPELINE, options->input->path, 0, 0,
            "pipeline %s takes folders (input.scene) and archives of them, and this is "
            "another file",
            options->pipeline->name);
    s->stand_in = calloc(input_of(s)->n_sources + 1, sizeof *s->stand_in);
    if (s->stand_in == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of the scene");
    int rc = open_last_page(s, err);
    rc = rc ? rc : open_file(s, 0, files ? files->file[0].path : options->input->path, err);
    if (rc == 0 && input_of(s)->pages)
        rc = check_page(s, 0, err);
    if (rc == 0) {
        pb_raster_choose_valid(s->raster[0], (enum pb_valid)input_of(s)->valid, input_of(s)->bands,
                               input_of(s)->n_bands);
        rc = choose_complex(s, 0, err);
    }
    for (size_t i = 0; i < input_of(s)->n_sources && rc == 0; i++)
        rc = open_other(s, i, err);
    rc = rc ? rc : make_tables(s, err);
    return pb_run_sources_blame(s, rc, err);
}

void pb_run_sources_close(struct pb_run_sources *s)
{
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        pb_raster_close(s->raster[i]);
    free(s->stand_in);
    free(s->tables);
    pb_run_columns_destroy(s->columns);
    memset(s, 0, sizeof *s);
}

int pb_run_sources_check(const struct pb_run_sources *s, const struct pb_plan *plan,
                         struct pb_err *err)
{
    for (size_t i = 0; i < input_of(s)->n_sources; i++)
        if (s->raster[i + 1] == NULL && pb_plan_reads(plan, i + 1, 0))
            return pb_fail(err, PB_E_SYSTEM,
                           "the plan reads file %s, which was thought not to be needed; please "
                           "report it",
                           input_of(s)->sources[i].name);
    return 0;
}

int pb_run_sources_unchanged(const struct pb_run_sources *s, struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i <= input_of(s)->n_sources && rc == 0; i++)
        if (s->raster[i] != NULL)
            rc = pb_raster_unchanged(s->raster[i], err);
    return pb_run_sources_blame(s, rc, err);
}
