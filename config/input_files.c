/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/input_files.h"

#include "config/base/arena.h"
#include "config/base/glob.h"
#include "config/config_parts.h"
#include "config/group_pattern.h"
#include "config/pipeline_config.h"
#include "config/schema_values.h"
#include "config/yaml/yaml_tree.h"
#include "kernels/chain/chain.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)

/* The value of a key of the section, else the section. */
static const struct pb_yaml *place(const struct pb_yaml *owner, const struct pb_yaml *node,
                                   const char *key)
{
    const struct pb_yaml *value = node ? pb_yaml_find(node, key, NULL) : NULL;
    return value ? value : node ? node : owner;
}

static bool has(const struct pb_yaml *node, const char *key)
{
    return node != NULL && node->kind == PB_YAML_MAP && pb_yaml_find(node, key, NULL) != NULL;
}

/* Whether both are bands of one file that is read in one way. */
static bool is_one_file(const struct pb_file_config *a, const struct pb_file_config *b)
{
    return strcmp(a->match, b->match) == 0 && a->nth == b->nth && a->page == b->page &&
           a->optional == b->optional && a->scale == b->scale && a->offset == b->offset &&
           a->has_nodata == b->has_nodata && (!a->has_nodata || a->nodata == b->nodata) &&
           a->resample == b->resample && a->has_complex == b->has_complex &&
           (!a->has_complex || a->complex == b->complex);
}

static void settle_scaling(struct pb_input_config *input)
{
    for (size_t i = 0; i < input->n_files; i++) {
        struct pb_file_config *file = &input->files[i];
        if (!file->has_scale)
            file->scale = input->scale;
        if (!file->has_offset)
            file->offset = input->offset;
        if (!file->has_nodata && input->has_nodata) {
            file->has_nodata = true;
            file->nodata = input->nodata;
        }
        if (!file->has_complex && input->has_complex) {
            file->has_complex = true;
            file->complex = input->complex;
        }
        file->has_scale = file->has_offset = true;
    }
}

/* The file that has the bands of files[first] and of those after it that are read like it. */
static struct pb_source_config gather(struct pb_load *load, struct pb_input_config *input,
                                      size_t first, bool *taken)
{
    const struct pb_file_config *lead = &input->files[first];
    struct pb_source_config file = {.name = lead->band,
                                    .file = lead->match,
                                    .scale = lead->scale,
                                    .offset = lead->offset,
                                    .has_nodata = lead->has_nodata,
                                    .nodata = lead->nodata,
                                    .has_complex = lead->has_complex,
                                    .complex = lead->complex,
                                    .resample = lead->resample,
                                    .of_scene = true,
                                    .nth = lead->nth,
                                    .page = lead->page,
                                    .optional = lead->optional != 0,
                                    .is_needed = true};
    file.bands = pb_arena_alloc(load->arena, input->n_files, sizeof *file.bands);
    for (size_t i = 0; file.bands && i < input->n_files; i++) {
        if (taken[i] || !is_one_file(lead, &input->files[i]))
            continue;
        taken[i] = true;
        file.bands[file.n_bands++] =
            (struct pb_band_config){input->files[i].band, input->files[i].index};
    }
    return file;
}

static size_t grid_of(struct pb_load *load, const struct pb_yaml *node,
                      const struct pb_input_config *input)
{
    for (size_t i = 0; input->grid != NULL && i < input->n_files; i++)
        if (strcmp(input->files[i].band, input->grid) == 0)
            return i;
    if (input->grid != NULL && !pb_has_mistake(load, place(node, node, "files")))
        WRONG(load, place(node, node, "grid"), "input.grid: '%.63s' is no band of input.files",
              input->grid);
    return 0;
}

static void spread_files(struct pb_load *load, const struct pb_yaml *node,
                         struct pb_input_config *input)
{
    bool taken[PB_BANDS_MAX] = {false};
    size_t grid = grid_of(load, node, input);
    settle_scaling(input);
    input->files[grid].resample = PB_BRING_NO;
    const struct pb_source_config first = gather(load, input, grid, taken);
    input->file = first.file;
    input->file_nth = first.nth;
    input->file_page = first.page;
    if (first.optional)
        WRONG(load, place(node, node, "files"),
              "input.files.%.63s: optional is not for the band whose grid is the scene's; name "
              "another one with input.grid",
              first.name);
    input->bands = first.bands;
    input->n_bands = first.n_bands;
    input->scale = first.scale;
    input->offset = first.offset;
    input->has_nodata = first.has_nodata;
    input->nodata = first.nodata;
    input->has_complex = first.has_complex;
    input->complex = first.complex;
    for (size_t i = 0; i < input->n_files && !pb_arena_failed(load->arena); i++)
        if (!taken[i] && input->n_sources < PB_FILES_MAX)
            input->sources[input->n_sources++] = gather(load, input, i, taken);
}

/* With a page for each band, pages are read like files of a scene. */
static void spread_pages(struct pb_load *load, const struct pb_yaml *node,
                         struct pb_input_config *input)
{
    input->n_files = input->n_own_bands;
    input->files = pb_arena_alloc(load->arena, input->n_files, sizeof *input->files);
    for (size_t i = 0; input->files != NULL && i < input->n_files; i++) {
        const struct pb_band_config *band = &input->own_bands[i];
        char name[32];
        int n = snprintf(name, sizeof name, "page %d", (int)band->index);
        input->files[i] =
            (struct pb_file_config){.band = band->name,
                                    .match = pb_arena_text(load->arena, name, (size_t)n),
                                    .page = band->index,
                                    .index = 1,
                                    .resample = PB_BRING_NO};
    }
    if (!pb_arena_failed(load->arena))
        spread_files(load, node, input);
    input->files = NULL; /* the scene is one file */
    input->n_files = 0;
    input->file = NULL;
}

/* An ending that files of scenes have would make sidecars of them. */
static void check_sidecars(struct pb_load *load, const struct pb_yaml *node,
                           const struct pb_input_config *input)
{
    static const char *const rasters[] = {".tif", ".tiff", ".jp2", ".j2k", ".j2c", ".jpx"};
    for (size_t i = 0; i < input->n_sidecars; i++) {
        const char *ending = input->sidecars[i];
        bool is_raster = false;
        for (size_t k = 0; k < sizeof rasters / sizeof *rasters; k++)
            is_raster = is_raster || strcasecmp(ending, rasters[k]) == 0;
        if (is_raster || strchr("._-", ending[0]) == NULL || strlen(ending) < 3 ||
            strpbrk(ending, "/*?[]") != NULL)
            WRONG(load, node,
                  "input.sidecars: '%.60s' is no ending of a sidecar, such as .msk or _RPC.TXT",
                  ending);
    }
}

static void check_pages(struct pb_load *load, const struct pb_yaml *owner,
                        const struct pb_yaml *node, const struct pb_input_config *input)
{
    const struct pb_yaml *bands = place(owner, node, "bands");
    if (input->pages && has(node, "files"))
        WRONG(load, place(owner, node, "pages"),
              "input.pages is for scenes of one file; write {match: ..., page: 2} in input.files");
    else if (input->pages && !has(node, "bands"))
        WRONG(load, place(owner, node, "pages"),
              "input.pages: all needs the page of each band; write bands: {B: 1, G: 2, R: 3}");
    else if (input->pages && input->n_own_bands > PB_FILES_MAX)
        WRONG(load, bands, "input.pages: all reads up to %d pages, and input.bands names %zu bands",
              PB_FILES_MAX, input->n_own_bands);
}

/* Keys that say the same thing twice, or nothing. */
static void check_keys(struct pb_load *load, const struct pb_yaml *owner,
                       const struct pb_yaml *node, const struct pb_input_config *input)
{
    static const char *const of_files[] = {"scene", "archives", "group", "by", "grid", "complete"};
    check_sidecars(load, place(owner, node, "sidecars"), input);
    check_pages(load, owner, node, input);
    if (!has(node, "files")) {
        bool waits = input->n_metadata + input->n_sidecars > 0; /* then "complete" may be */
        for (size_t i = 0; i < sizeof of_files / sizeof *of_files - waits; i++)
            if (has(node, of_files[i]))
                WRONG(load, place(owner, node, of_files[i]),
                      "input.%s is about scenes of many files; name them with input.files: {R: "
                      "B04.tif}",
                      of_files[i]);
        for (size_t i = 0; i < input->n_metadata; i++)
            if (strchr(input->metadata[i], '/') != NULL)
                WRONG(load, place(owner, node, "metadata"),
                      "input.metadata: '%.80s' has a slash, but the metadata of a scene that is "
                      "one file are in its directory",
                      input->metadata[i]);
        return;
    }
    if (has(node, "bands"))
        WRONG(load, place(owner, node, "bands"),
              "input.files names the bands already; write {match: ..., band: 2} there in place of "
              "input.bands");
    if (has(node, "match"))
        WRONG(load, place(owner, node, "match"),
              "input.match is for scenes of one file; here input.scene selects them");
    if (!has(node, "scene") && !has(node, "group"))
        WRONG(load, place(owner, node, "files"),
              "input.files needs input.scene, a pattern for the folders that are one scene each, "
              "such as \"S2?_*_L2A/\", or input.group, for loose files");
    if (has(node, "scene") && has(node, "group"))
        WRONG(load, place(owner, node, "group"),
              "input.scene is for folders and input.group for loose files; make two pipelines");
    if (input->scene != NULL && (input->scene[0] == '\0' || strcmp(input->scene, "/") == 0))
        WRONG(load, place(owner, node, "scene"), "input.scene: an empty pattern fits no folder");
    const char *wrong = input->scene != NULL ? pb_glob_wrong(input->scene) : NULL;
    if (wrong != NULL)
        WRONG(load, place(owner, node, "scene"), "input.scene: '%.80s' %s", input->scene, wrong);
    const char *slash = input->scene ? strchr(input->scene, '/') : NULL;
    if (slash != NULL && slash[1] != '\0')
        WRONG(load, place(owner, node, "scene"),
              "input.scene: '%.80s' has a slash inside; it is a pattern for the name of one folder",
              input->scene);
}

/* Metadata that are read before the scene is known: {scene} is in none of their names. */
static void check_asked(struct pb_load *load, const struct pb_yaml *node,
                        const struct pb_input_config *input)
{
    for (size_t i = 0; i < input->n_metadata; i++)
        if (input->metadata[i][0] != '*' || strpbrk(input->metadata[i], "{/") != NULL)
            WRONG(load, place(node, node, "metadata"),
                  "input.metadata: with metadata in input.by, each file has metadata of its own "
                  "next to it, so '%.80s' must begin with a *, which stands for the begin of the "
                  "file's name, and must have neither {scene} nor a slash",
                  input->metadata[i]);
    if (input->n_metadata == 0 && strstr(input->by, "{meta.tile}") != NULL)
        WRONG(load, place(node, node, "by"),
              "input.by takes {meta.tile}, which is read from metadata next to a file: name these "
              "with input.metadata, \"*_MTL.txt\"");
}

static void compile_group(struct pb_load *load, const struct pb_yaml *owner,
                          const struct pb_yaml *node, struct pb_input_config *input)
{
    struct pb_group_wrong wrong;
    input->group_pattern = pb_group_pattern_create(input->group, input->by, &wrong);
    if (input->group_pattern == NULL && wrong.text[0] == '\0')
        pb_arena_fail(load->arena);
    else if (input->group_pattern == NULL && wrong.of_by)
        WRONG(load, place(owner, node, "by"), "%s", wrong.text);
    else if (input->group_pattern == NULL)
        WRONG(load, place(owner, node, "group"), "input.group: '%.120s' cannot be used: %s",
              input->group, wrong.text);
    if (input->group_pattern != NULL && input->by != NULL) {
        const char *by = pb_group_pattern_by(input->group_pattern);
        input->by = pb_arena_text(load->arena, by, strlen(by));
    }
    if (input->group_pattern != NULL && pb_group_pattern_asks(input->group_pattern))
        check_asked(load, node, input);
}

static bool counts_files(const struct pb_input_config *input)
{
    bool counts = false;
    for (size_t i = 0; i < input->n_files && !counts; i++)
        counts = input->files[i].nth > 0;
    return counts;
}

/* Of an order that follows from what is in files. */
static void check_content(struct pb_load *load, const struct pb_yaml *owner,
                          const struct pb_yaml *node, const struct pb_input_config *input)
{
    const bool by_cloud = input->order == PB_FILES_BY_CLOUD;
    if (!counts_files(input))
        WRONG(load, place(owner, node, "order"),
              "input.order: %s is about files that are counted; none of input.files has nth",
              by_cloud ? "cloud" : "list");
    if (!by_cloud && input->list == NULL)
        WRONG(load, place(owner, node, "order"),
              "input.order: list takes the order of a file; name it with input.list");
    for (size_t i = 0; i < input->n_metadata; i++)
        if (by_cloud && input->metadata[i][0] != '*')
            WRONG(load, place(owner, node, "metadata"),
                  "input.metadata: with input.order: cloud each file has metadata of its own, so "
                  "'%.80s' has to begin with a *, which stands for the begin of the file's name",
                  input->metadata[i]);
}

/* Keys that need something of the expression of input.group. */
static void check_order(struct pb_load *load, const struct pb_yaml *owner,
                        const struct pb_yaml *node, const struct pb_input_config *input)
{
    const bool dated = pb_files_by_date(input->order);
    if (input->by != NULL && input->group == NULL)
        WRONG(load, place(owner, node, "by"),
              "input.by is made of groups of input.group, which is not there");
    if (input->order != PB_FILES_BY_NAME && input->n_files == 0)
        WRONG(load, place(owner, node, "order"),
              "input.order is about scenes of many files; name them with input.files");
    else if (dated && (input->group == NULL || (input->group_pattern != NULL &&
                                                !pb_group_pattern_has_date(input->group_pattern))))
        WRONG(load, place(owner, node, "order"),
              "input.order: dates are those of (?<date>...) in input.group, which is not there");
    else if (pb_files_by_content(input->order))
        check_content(load, owner, node, input);
    if (input->list != NULL && input->order != PB_FILES_BY_LIST)
        WRONG(load, place(owner, node, "list"), "input.list is for input.order: list");
}

static void check_reopen(struct pb_load *load, const struct pb_yaml *owner,
                         const struct pb_yaml *node, const struct pb_input_config *input)
{
    const struct pb_yaml *at = place(owner, node, "complete");
    if (input->complete.reopen_ms > 0 && input->group == NULL)
        WRONG(load, place(at, at, "reopen"),
              "input.complete.reopen is about loose files that join a scene; name them with "
              "input.group");
}

void pb_input_files_resolve(struct pb_load *load, const struct pb_yaml *owner,
                            const struct pb_yaml *node, struct pb_input_config *input)
{
    size_t before = pb_report_count(&load->report);
    pb_check_stream(load, owner, node, input);
    if (input->stream == NULL)
        check_keys(load, owner, node, input);
    if (input->group != NULL && input->n_files > 0)
        compile_group(load, owner, node, input);
    check_order(load, owner, node, input);
    input->metadata_each =
        counts_files(input) &&
        (input->order == PB_FILES_BY_CLOUD ||
         (input->group_pattern != NULL && pb_group_pattern_asks(input->group_pattern)));
    check_reopen(load, owner, node, input);
    input->bands = input->own_bands;
    input->n_bands = input->n_own_bands;
    input->sources = pb_arena_alloc(load->arena, PB_FILES_MAX + input->n_own_sources + 1,
                                    sizeof *input->sources);
    if (input->sources == NULL)
        return;
    if (input->n_files > 0 || input->stream != NULL)
        input->n_match = 0;
    if (input->n_files > 0)
        input->has_complete = true;
    if (input->n_files > 0 && pb_report_count(&load->report) == before)
        spread_files(load, node, input);
    if (input->pages && input->n_own_bands > 0 && pb_report_count(&load->report) == before)
        spread_pages(load, node, input);
    for (size_t i = 0; i < input->n_own_sources; i++) {
        input->sources[input->n_sources] = input->own_sources[i];
        input->sources[input->n_sources++].is_needed = true;
    }
    if (input->n_sources >= PB_FILES_MAX)
        WRONG(load, place(owner, node, "files"),
              "a pipeline reads at most %d files; %s and input.sources name %zu", PB_FILES_MAX,
              input->pages ? "the pages of input.bands" : "input.files", input->n_sources + 1);
}

/* --- which files are needed ------------------------------------------------------------------- */

static void mark_used(const struct pb_input_config *input, const struct pb_chain *chain)
{
    const uint32_t *used;
    size_t n = pb_chain_used(chain, &used);
    for (size_t i = 0; i < n; i++) {
        size_t band = used[i], first = input->n_bands;
        for (size_t k = 0; k < input->n_sources; k++) {
            if (band >= first && band < first + input->sources[k].n_bands)
                input->sources[k].is_needed = true;
            first += input->sources[k].n_bands;
        }
    }
}

/* The source that has a band of that name; NULL: another file has it, or none. */
static struct pb_source_config *source_of(const struct pb_input_config *input, const char *band)
{
    for (size_t k = 0; k < input->n_sources; k++)
        for (size_t i = 0; i < input->sources[k].n_bands; i++)
            if (strcmp(input->sources[k].bands[i].name, band) == 0)
                return &input->sources[k];
    return NULL;
}

static bool is_made(const struct pb_pipeline_config *pipeline, const char *band)
{
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_step_config *step = &pipeline->steps[i];
        const struct pb_items *made = pb_op_outputs(step->op, step->params);
        for (size_t k = 0; k < made->n; k++)
            if (strcmp(pb_item_band(&made->items[k]), band) == 0)
                return true;
    }
    return false;
}

/* A key that is plain text may name a band whose grid is taken (resample.like): no pixel of it is
 * read, but its file tells the grid. Behind a band that a step makes any file may be. */
static void mark_named(const struct pb_pipeline_config *pipeline, const struct pb_step_config *step)
{
    const struct pb_input_config *input = &pipeline->input;
    for (size_t i = 0; i < step->op->n_keys; i++) {
        const struct pb_key *key = &step->op->keys[i];
        struct pb_key_value room;
        if (key->type != PB_KEY_TEXT || !pb_key_is_given(key, step->params))
            continue;
        const char *name = pb_key_items(key, step->params, &room).items[0].text;
        struct pb_source_config *source = source_of(input, name);
        if (source != NULL)
            source->is_needed = true;
        for (size_t k = 0; is_made(pipeline, name) && k < input->n_sources; k++)
            input->sources[k].is_needed = true;
    }
}

void pb_input_files_mark(struct pb_pipeline_config *pipeline, const struct pb_chain *chain)
{
    struct pb_input_config *input = &pipeline->input;
    if (input->n_files == 0)
        return;
    for (size_t k = 0; k < input->n_sources; k++)
        input->sources[k].is_needed = !input->sources[k].of_scene;
    mark_used(input, chain);
    for (size_t i = 0; i < pb_chain_earlier_count(chain); i++)
        mark_used(input, pb_chain_earlier((struct pb_chain *)chain, i));
    for (size_t i = 0; i < pipeline->n_steps; i++)
        mark_named(pipeline, &pipeline->steps[i]);
}
