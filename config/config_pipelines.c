/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/config_parts.h"

#include "config/base/arena.h"
#include "config/config.h"
#include "config/input_files.h"
#include "config/output/output_path.h"
#include "config/pipeline_config.h"
#include "config/yaml/yaml_tree.h"
#include "kernels/op.h"
#include "kernels/ops/geometry/warp.h"

#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)
#define PIPELINES_MAX 256

const char *const pb_top_keys[PB_TOP_KEYS] = {"service", "compute",   "limits",
                                              "web",     "pipelines", "notify"};

static bool several_keys(struct pb_load *load, const struct pb_yaml *entry, const char *what)
{
    const char *first = entry->keys[0]->text, *second = entry->keys[1]->text;
    WRONG(load, entry->keys[1],
          "one %s has one key, this one has '%.40s' and '%.40s'; start the next %s with '- ', or "
          "indent '%.40s' further than '%.40s'",
          what, first, second, what, second, first);
    return false;
}

bool pb_read_entry(struct pb_load *load, const struct pb_yaml *entry, const char *what,
                   const char *example, const struct pb_yaml **out_name,
                   const struct pb_yaml **out_body)
{
    char found[80];
    *out_body = NULL;
    if (entry->kind == PB_YAML_SCALAR && !pb_yaml_is_null(entry)) {
        *out_name = entry;
        return true;
    }
    if (entry->kind != PB_YAML_MAP || entry->n == 0) {
        WRONG(load, entry, "a %s is a name with its keys, not %s: %s", what,
              entry->kind == PB_YAML_MAP ? "an empty map"
                                         : pb_yaml_what(entry, found, sizeof found),
              example);
        return false;
    }
    if (entry->n > 1)
        return several_keys(load, entry, what);
    *out_name = entry->keys[0];
    if (!pb_yaml_is_null(entry->items[0]))
        *out_body = entry->items[0];
    return true;
}

bool pb_has_mistake(const struct pb_load *load, const struct pb_yaml *node)
{
    bool has = pb_report_has(&load->report, node->line, node->col);
    for (size_t i = 0; node->kind != PB_YAML_SCALAR && i < node->n && !has; i++)
        has = pb_has_mistake(load, node->items[i]) ||
              (node->kind == PB_YAML_MAP && pb_has_mistake(load, node->keys[i]));
    return has;
}

static bool names_band(const struct pb_band_config *bands, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(bands[i].name, name) == 0)
            return true;
    return false;
}

/* Checks that band names of all files differ. */
static void check_names(struct pb_load *load, const struct pb_yaml *body,
                        const struct pb_input_config *input)
{
    for (size_t i = 0; i < input->n_sources; i++)
        for (size_t b = 0; b < input->sources[i].n_bands; b++) {
            const char *name = input->sources[i].bands[b].name;
            bool twice = names_band(input->bands, input->n_bands, name);
            for (size_t k = 0; k < i && !twice; k++)
                twice = names_band(input->sources[k].bands, input->sources[k].n_bands, name);
            if (twice)
                WRONG(load, pb_yaml_find(body, "sources", NULL),
                      "input.sources.%.63s: another file has a band '%.63s' already; give each "
                      "band a name of its own",
                      input->sources[i].name, name);
        }
}

static void read_output(struct pb_load *load, const struct pb_yaml *body,
                        struct pb_output_config *output)
{
    const struct pb_yaml *map = pb_yaml_find(body, "output", NULL);
    size_t before = pb_report_count(&load->report);
    char why[200];
    pb_schema_read(load, &pb_section_output, map, output);
    if (pb_report_count(&load->report) != before || pb_arena_failed(load->arena))
        return;
    if (!pb_output_path_check(output->path, why))
        WRONG(load, pb_yaml_find(map, "path", NULL), "output.path: '%.80s' %s", output->path, why);
    if (output->name != NULL && !pb_output_name_check(output->name, why))
        WRONG(load, pb_yaml_find(map, "name", NULL), "output.name: '%.80s' %s", output->name, why);
}

const struct pb_warp_op *pb_pipeline_tile_step(const struct pb_pipeline_config *pipeline)
{
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_step_config *step = &pipeline->steps[i];
        const struct pb_warp_op *warp = step->op == pb_op_find("warp") ? step->params : NULL;
        if (warp != NULL && warp->grid != PB_TILING_NONE)
            return warp;
    }
    return NULL;
}

/* The files of a grid's tiles lie side by side. */
static void check_tile_names(struct pb_load *load, const struct pb_yaml *body,
                             const struct pb_pipeline_config *pipeline)
{
    const char *name = pipeline->output.name;
    const struct pb_yaml *node = pb_yaml_find(pb_yaml_find(body, "output", NULL), "name", NULL);
    if (name == NULL || node == NULL || pb_arena_failed(load->arena))
        return;
    if (pb_output_name_has_tile(name) && pb_pipeline_tile_step(pipeline) == NULL)
        WRONG(load, node,
              "output.name: '%.80s' has {tile}, and no step makes tiles; leave it out, or give "
              "warp a grid",
              name);
    else if (pb_pipeline_tile_step(pipeline) != NULL && !pb_output_name_has_tile(name) &&
             strstr(name, "{scene}") == NULL)
        WRONG(load, node,
              "output.name: '%.80s' gives the files of all tiles one name; add {tile} to it", name);
}

/* False when there is nothing in it to check further. */
static bool read_pipeline(struct pb_load *load, const struct pb_yaml *key,
                          const struct pb_yaml *body, struct pb_pipeline_config *pipeline,
                          struct pb_pipeline_notes *notes)
{
    static const char *const keys[] = {"priority", "input", "output",
                                       "exchange", "steps", "products"};
    const size_t n_keys = sizeof keys / sizeof *keys;
    char found[80], where[80];
    (void)snprintf(where, sizeof where, "pipeline '%.63s'", key->text);
    pipeline->line = key->line;
    pipeline->col = key->col;
    pipeline->name = pb_arena_text(load->arena, key->text, strlen(key->text));
    if (!pb_is_file_word(key->text))
        WRONG(load, key,
              "'%.80s' cannot be a pipeline's name; use letters, digits, '_', '-' and '.', at most "
              "63",
              key->text);
    if (body->kind != PB_YAML_MAP) {
        WRONG(load, body, "pipeline '%.63s' must be a map with input, steps and products, not %s",
              key->text, pb_yaml_what(body, found, sizeof found));
        return false;
    }
    pb_report_unknown(load, body, where, keys, n_keys);
    pb_schema_read_own(load, &pb_section_pipeline, body, pipeline);
    const struct pb_yaml *input = pb_yaml_find(body, "input", NULL);
    const struct pb_yaml *products = pb_yaml_find(body, "products", NULL);
    size_t before = pb_report_count(&load->report);
    pb_schema_read(load, &pb_section_input, input, &pipeline->input);
    if (pipeline->input.valid == PB_VALID_MASK && pipeline->input.has_nodata)
        WRONG(load, pb_yaml_find(input, "nodata", NULL),
              "input.nodata means nothing with valid: mask; leave one out, or write valid: both");
    if (pipeline->input.scale == 0) {
        const struct pb_yaml *scale = pb_yaml_find(input, "scale", NULL);
        if (scale && !pb_arena_failed(load->arena))
            WRONG(load, scale, "input.scale: 0 would make every pixel the same; use 1 for none");
    }
    pb_input_files_resolve(load, key, input, &pipeline->input);
    check_names(load, input, &pipeline->input);
    notes->input_is_sound = pb_report_count(&load->report) == before && !body->damaged;
    read_output(load, body, &pipeline->output);
    const struct pb_yaml *exchange = pb_yaml_find(body, "exchange", NULL);
    pb_read_exchange(load, exchange, pipeline);
    pb_read_steps(load, pb_yaml_find(body, "steps", NULL), pipeline, notes);
    check_tile_names(load, body, pipeline);
    pb_choose_exchanges(load, exchange, pipeline);
    if (notes->input_is_sound)
        pb_check_wants(load, pipeline, notes);
    if (products)
        pb_read_products(load, products, pipeline, notes);
    else if (!pb_is_misspelt(body, "products", keys, n_keys))
        WRONG(load, key, "pipeline '%.63s' makes nothing; add 'products', such as - cog: {}",
              key->text);
    return true;
}

/* A scene that files may join is made again from those that the archive keeps. */
static void check_reopen(struct pb_load *load, const struct pb_yaml *body,
                         const struct pb_pipeline_config *pipeline, const struct pb_config *config)
{
    static const char *const way[] = {"input", "complete", "reopen"};
    if (pipeline->input.complete.reopen_ms == 0 || config->service.on_success != PB_INPUT_DELETE)
        return;
    for (size_t i = 0; i < sizeof way / sizeof way[0] && body != NULL; i++)
        body = body->kind == PB_YAML_MAP ? pb_yaml_find(body, way[i], NULL) : NULL;
    if (body != NULL)
        WRONG(load, body,
              "input.complete.reopen makes a scene again from its archived files, and "
              "service.on_success: delete keeps none; write on_success: archive, with "
              "retention.done for how long");
}

void pb_read_pipelines(struct pb_load *load, const struct pb_yaml *root, struct pb_config *config)
{
    const struct pb_yaml *key = root, *map = pb_yaml_find(root, "pipelines", &key);
    if (map == NULL && pb_is_misspelt(root, "pipelines", pb_top_keys, PB_TOP_KEYS))
        return;
    if (map == NULL) {
        WRONG(load, root, "there are no 'pipelines'; add one with its input, steps and products");
        return;
    }
    if (map->kind == PB_YAML_LIST) {
        WRONG(load, key,
              "'pipelines' must be a map with the name of each pipeline, such as {ndvi: {input: "
              "...}}, not a list");
        return;
    }
    if (map->kind != PB_YAML_MAP || map->n == 0) {
        WRONG(load, key,
              "'pipelines' must name at least one pipeline with its input, steps and products");
        return;
    }
    if (map->n > PIPELINES_MAX) {
        WRONG(load, key, "%zu pipelines; at most %d are allowed", map->n, PIPELINES_MAX);
        return;
    }
    config->pipelines = pb_arena_alloc(load->arena, map->n, sizeof *config->pipelines);
    if (config->pipelines == NULL)
        return;
    for (size_t i = 0; i < map->n && !pb_arena_failed(load->arena); i++) {
        struct pb_pipeline_config *pipeline = &config->pipelines[config->n_pipelines++];
        struct pb_pipeline_notes notes = {.is_sound = false};
        size_t before = pb_report_count(&load->report);
        bool readable = read_pipeline(load, map->keys[i], map->items[i], pipeline, &notes);
        if (readable)
            check_reopen(load, map->items[i], pipeline, config);
        notes.is_sound = pb_report_count(&load->report) == before;
        if (readable && !map->items[i]->damaged && !pb_arena_failed(load->arena))
            pb_check_chain(load, map->items[i], pipeline, &notes);
    }
    pb_check_series(load, config);
    pb_check_streams(load, map, config);
}
