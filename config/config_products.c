/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Products: the keys by the table of their kind, checks of keys against each other by the kind's
 * own check, and here the checks of products against each other (their file names). */
#include "config/config_parts.h"

#include "config/base/arena.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/product_check.h"
#include "config/product_config.h"
#include "config/units.h"
#include "config/yaml/yaml_tree.h"
#include "kernels/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)
#define PRODUCTS_MAX 64
#define KINDS_MAX    32
#define KEYS_MAX     32

struct pb_product_check {
    struct pb_load *load;
    const struct pb_section *section;
    const struct pb_yaml *entry, *name, *body; /* body NULL = no keys */
    struct pb_pipeline_config *pipeline;
    struct pb_pipeline_notes *notes;
};

static const struct pb_yaml *value_of(const struct pb_product_check *check, const char *key)
{
    return check->body ? pb_yaml_find(check->body, key, NULL) : NULL;
}

bool pb_product_key_is_sound(const struct pb_product_check *check, const char *key)
{
    const char *names[KEYS_MAX];
    const struct pb_yaml *node = value_of(check, key);
    size_t n = check->section->n < KEYS_MAX ? check->section->n : KEYS_MAX;
    if (node)
        return !pb_has_mistake(check->load, node);
    for (size_t i = 0; i < n; i++)
        names[i] = check->section->keys[i].name;
    return !pb_is_misspelt(check->body, key, names, n);
}

const char *pb_product_key_text(const struct pb_product_check *check, const char *key)
{
    const struct pb_yaml *node = value_of(check, key);
    return node && node->kind == PB_YAML_SCALAR ? node->text : NULL;
}

bool pb_product_key_is_given(const struct pb_product_check *check, const char *key)
{
    return value_of(check, key) != NULL;
}

const char *pb_product_key_path(const struct pb_product_check *check, const char *path)
{
    const char *config = check->load->report.file, *slash = strrchr(config, '/');
    size_t directory = slash != NULL && path[0] != '/' ? (size_t)(slash - config) + 1 : 0;
    char *out = pb_product_key_alloc(check, directory + strlen(path) + 1, 1);
    if (out != NULL) {
        memcpy(out, config, directory);
        memcpy(out + directory, path, strlen(path));
    }
    return out;
}

void *pb_product_key_alloc(const struct pb_product_check *check, size_t count, size_t size)
{
    return pb_arena_alloc(check->load->arena, count, size);
}

void pb_product_key_wrong(const struct pb_product_check *check, const char *key, const char *format,
                          ...)
{
    const struct pb_yaml *node = value_of(check, key);
    char message[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    WRONG(check->load, node ? node : check->name, "%s", message);
}

/* The lists of the pipeline with room for one more. False: no memory. */
static bool grow_steps(const struct pb_product_check *check)
{
    struct pb_pipeline_config *pipeline = check->pipeline;
    struct pb_pipeline_notes *notes = check->notes;
    struct pb_step_config *steps =
        pb_arena_alloc(check->load->arena, pipeline->n_steps + 1, sizeof *steps);
    struct pb_step_note *all = pb_arena_alloc(check->load->arena, notes->n_steps + 1, sizeof *all);
    if (steps == NULL || all == NULL)
        return false;
    if (pipeline->n_steps > 0)
        memcpy(steps, pipeline->steps, pipeline->n_steps * sizeof *steps);
    if (notes->n_steps > 0)
        memcpy(all, notes->steps, notes->n_steps * sizeof *all);
    pipeline->steps = steps;
    notes->steps = all;
    return true;
}

/* {"R [2, 98]": R, ...}: no band of a configuration has such a name. */
static bool name_planes(const struct pb_product_check *check, struct pb_product_config *product,
                        const char *label, struct pb_items *out)
{
    struct pb_arena *arena = check->load->arena;
    struct pb_item *items = pb_arena_alloc(arena, product->n_bands, sizeof *items);
    char text[160];
    product->planes = pb_arena_alloc(arena, product->n_bands, sizeof *product->planes);
    for (size_t i = 0; items != NULL && product->planes != NULL && i < product->n_bands; i++) {
        int n = snprintf(text, sizeof text, "%.80s %.70s", product->bands[i], label);
        product->planes[i] = pb_arena_text(arena, text, (size_t)n);
        items[i] = (struct pb_item){.key = product->planes[i], .text = product->bands[i]};
    }
    *out = (struct pb_items){.items = items, .n = product->n_bands};
    return !pb_arena_failed(arena);
}

void pb_product_stretch(const struct pb_product_check *check, struct pb_product_config *product,
                        const char *params, const char *label)
{
    struct pb_load *load = check->load;
    struct pb_step_config step = {.op = pb_op_find("stretch"),
                                  .product = product,
                                  .line = product->line,
                                  .col = product->col};
    const struct pb_section section = pb_op_section(step.op);
    char text[200];
    (void)snprintf(text, sizeof text, "{%.190s}", params);
    step.params = pb_arena_alloc(load->arena, 1, step.op->params_bytes);
    const struct pb_yaml *node = pb_default_node(load, text);
    if (step.params == NULL || node == NULL || !grow_steps(check))
        return;
    pb_schema_read(load, &section, node, step.params);
    for (size_t i = 0; i < section.n; i++)
        if (strcmp(section.keys[i].name, "bands") == 0 &&
            !name_planes(check, product, label,
                         (struct pb_items *)(void *)((char *)step.params + section.keys[i].offset)))
            return;
    struct pb_pipeline_notes *notes = check->notes;
    notes->steps[notes->n_steps++] =
        (struct pb_step_note){check->entry, check->pipeline->n_steps, true};
    check->pipeline->steps[check->pipeline->n_steps++] = step;
}

static const struct pb_product_kind *find_kind(struct pb_load *load, const struct pb_yaml *name)
{
    const char *names[KINDS_MAX];
    char suggestion[400];
    size_t n = load->kinds->n < KINDS_MAX ? load->kinds->n : KINDS_MAX;
    for (size_t i = 0; i < n; i++) {
        names[i] = load->kinds->kinds[i]->section.name;
        if (strcmp(names[i], name->text) == 0)
            return load->kinds->kinds[i];
    }
    WRONG(load, name, "there is no product '%.80s'%s", name->text,
          pb_suggest(name->text, names, n, suggestion, sizeof suggestion));
    return NULL;
}

/* NULL after a mistake that leaves no product. */
static struct pb_product_config *read_product(struct pb_load *load, const struct pb_yaml *entry,
                                              struct pb_pipeline_config *pipeline,
                                              struct pb_pipeline_notes *notes)
{
    const struct pb_yaml *name = NULL, *body = NULL;
    if (!pb_read_entry(load, entry, "product", "- cog: {bands: [NDVI]}", &name, &body))
        return NULL;
    const struct pb_product_kind *kind = find_kind(load, name);
    struct pb_product_config *product = kind ? pb_arena_alloc(load->arena, 1, kind->bytes) : NULL;
    if (product == NULL)
        return NULL;
    product->kind = kind;
    product->line = entry->line;
    product->col = entry->col;
    pb_schema_read(load, &kind->section, body, product);
    const struct pb_product_check check = {load, &kind->section, entry, name,
                                           body, pipeline,       notes};
    bool readable = body == NULL || body->kind == PB_YAML_MAP;
    if (kind->check && readable && !pb_arena_failed(load->arena))
        kind->check(product, &check);
    return product;
}

/* What tells products of a kind apart in their file names, "" = nothing. */
static const char *label_of(const struct pb_pipeline_config *pipeline,
                            const struct pb_product_config *product)
{
    const char *form = pipeline->output.name;
    if (form != NULL && strstr(form, "{product}") == NULL)
        return "";
    return product->name ? product->name : form ? product->kind->section.name : "";
}

/* Against the products before it. */
static void check_file_name(struct pb_load *load, const struct pb_pipeline_config *pipeline,
                            const struct pb_product_config *product)
{
    const char *kind = product->kind->section.name;
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *other = pipeline->products[i];
        if (other->kind != product->kind)
            continue;
        if (product->kind->describes_others)
            pb_report(&load->report, PB_E_CONFIG_VALUE, product->line, product->col,
                      "a second %s (first in line %d); one describes all products, keep one", kind,
                      other->line);
        else if (strcmp(label_of(pipeline, other), label_of(pipeline, product)) == 0 &&
                 pipeline->output.name != NULL && product->name != NULL)
            pb_report(&load->report, PB_E_CONFIG_VALUE, product->line, product->col,
                      "this %s would overwrite the one in line %d; put {product} into output.name, "
                      "or give it another name",
                      kind, other->line);
        else if (strcmp(label_of(pipeline, other), label_of(pipeline, product)) == 0)
            pb_report(&load->report, PB_E_CONFIG_VALUE, product->line, product->col,
                      "this %s would overwrite the one in line %d; give it %s name", kind,
                      other->line, product->name ? "another" : "a");
        else
            continue;
        return;
    }
}

/* The product that comes first in the configuration with that series; NULL = none before `until`.
 */
static const struct pb_product_config *series_before(const struct pb_config *config,
                                                     const char *name,
                                                     const struct pb_product_config *until)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        for (size_t k = 0; k < config->pipelines[i].n_products; k++) {
            const struct pb_product_config *product = config->pipelines[i].products[k];
            const char *series = product->kind->series ? product->kind->series(product) : NULL;
            if (product == until)
                return NULL;
            if (series != NULL && strcmp(series, name) == 0)
                return product;
        }
    return NULL;
}

void pb_check_series(struct pb_load *load, const struct pb_config *config)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        for (size_t k = 0; k < config->pipelines[i].n_products; k++) {
            const struct pb_product_config *product = config->pipelines[i].products[k], *other;
            const char *series = product->kind->series ? product->kind->series(product) : NULL;
            if (series == NULL || (other = series_before(config, series, product)) == NULL)
                continue;
            pb_report(&load->report, PB_E_CONFIG_VALUE, product->line, product->col,
                      "%s: the product in line %d puts its rows into '%.80s', too, and each would "
                      "take the other's away; give one another name",
                      product->kind->section.name, other->line, series);
        }
}

void pb_read_products(struct pb_load *load, const struct pb_yaml *list,
                      struct pb_pipeline_config *pipeline, struct pb_pipeline_notes *notes)
{
    if (list->kind != PB_YAML_LIST || list->n == 0 || list->n > PRODUCTS_MAX) {
        WRONG(load, list, "'products' must be a list of 1 to %d products, such as - cog: {}",
              PRODUCTS_MAX);
        return;
    }
    pipeline->products = pb_arena_alloc(load->arena, list->n, sizeof *pipeline->products);
    for (size_t i = 0; pipeline->products && i < list->n; i++) {
        struct pb_product_config *product = read_product(load, list->items[i], pipeline, notes);
        if (product == NULL)
            continue;
        check_file_name(load, pipeline, product);
        pipeline->products[pipeline->n_products++] = product;
    }
}
