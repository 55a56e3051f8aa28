/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/compose.h"

#include "config/base/arena.h"
#include "config/config_files.h"
#include "config/schema.h"
#include "config/yaml/yaml_tree.h"

#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)
#define PRESET_DEPTH_MAX 4 /* presets that are made of presets */

static struct pb_yaml *copy(struct pb_load *load, const struct pb_yaml *map, size_t n_more)
{
    return pb_yaml_copy_map(load->arena, map, n_more);
}

static bool is_map(const struct pb_yaml *node)
{
    return node != NULL && node->kind == PB_YAML_MAP;
}

static bool is_word(const struct pb_yaml *node)
{
    return node != NULL && node->kind == PB_YAML_SCALAR && !pb_yaml_is_null(node);
}

/* A scalar at the place of `node`. */
static const struct pb_yaml *word_at(struct pb_load *load, const struct pb_yaml *node,
                                     const char *text)
{
    struct pb_yaml *word = pb_arena_alloc(load->arena, 1, sizeof *word);
    if (word != NULL)
        *word = (struct pb_yaml){.kind = PB_YAML_SCALAR,
                                 .line = node->line,
                                 .col = node->col,
                                 .text_line = node->line,
                                 .text_col = node->col,
                                 .text = text,
                                 .plain = true,
                                 .nodes = 1};
    return word;
}

/* --- input ------------------------------------------------------------------------------------ */

/* How files become scenes: of these keys an input has one, so that any of them takes the place of
 * those of a preset. */
static const char *const ways[] = {"match", "scene", "group", "by"};
enum { WAYS = sizeof ways / sizeof ways[0] };

static bool is_way(const char *key)
{
    for (size_t i = 0; i < WAYS; i++)
        if (strcmp(key, ways[i]) == 0)
            return true;
    return false;
}

static bool has_way(const struct pb_yaml *map)
{
    for (size_t i = 0; i < map->n; i++)
        if (is_way(map->keys[i]->text) && strcmp(map->keys[i]->text, "by") != 0)
            return true;
    return false;
}

/* Entries of `over` replace those of `base` with the same key, and join the others. */
static const struct pb_yaml *put_over(struct pb_load *load, const struct pb_yaml *base,
                                      const struct pb_yaml *over)
{
    struct pb_yaml *map = copy(load, base, over->n);
    for (size_t i = 0; map != NULL && i < over->n; i++)
        pb_yaml_put(map, over->keys[i], over->items[i]);
    return map != NULL ? map : base;
}

/* An input with the keys of `over` except `preset`; the entries of keys that are maps on both sides
 * are put together. */
static const struct pb_yaml *put_input(struct pb_load *load, const struct pb_yaml *base,
                                       const struct pb_yaml *over)
{
    struct pb_yaml *map = copy(load, base, over->n);
    if (map == NULL)
        return base;
    map->line = over->line;
    map->col = over->col;
    if (has_way(over)) {
        map->n = 0;
        for (size_t i = 0; i < base->n; i++)
            if (!is_way(base->keys[i]->text))
                pb_yaml_put(map, base->keys[i], base->items[i]);
    }
    for (size_t i = 0; i < over->n; i++) {
        const struct pb_yaml *key = over->keys[i], *item = over->items[i];
        const struct pb_yaml *before = pb_yaml_find(map, key->text, NULL);
        if (strcmp(key->text, "preset") == 0)
            continue;
        if (is_map(before) && is_map(item))
            item = put_over(load, before, item);
        pb_yaml_put(map, key, item);
    }
    return map;
}

static const struct pb_yaml *compose_input(struct pb_load *load, const struct pb_yaml *input,
                                           int depth);

/* The input of the pipeline that has the preset's name; NULL after a mistake. */
static const struct pb_yaml *preset_input(struct pb_load *load, const struct pb_yaml *name,
                                          int depth)
{
    const int number = pb_config_files_preset(load, name);
    const struct pb_yaml *root = number > 0 ? pb_config_files_root(load, number) : NULL;
    const struct pb_yaml *pipelines = is_map(root) ? pb_yaml_find(root, "pipelines", NULL) : NULL;
    const struct pb_yaml *pipeline = pb_yaml_find(pipelines, name->text, NULL);
    const struct pb_yaml *input = pb_yaml_find(pipeline, "input", NULL);
    if (number > 0 && input == NULL && root != NULL) {
        pb_report(&load->report, PB_E_CONFIG_VALUE, root->line, root->col,
                  "the preset has no input: it needs a pipeline '%.63s' with one", name->text);
        return NULL;
    }
    if (input != NULL && depth == PRESET_DEPTH_MAX) {
        WRONG(load, name, "input: preset '%.63s' is made of presets %d times, perhaps of itself",
              name->text, PRESET_DEPTH_MAX);
        return NULL;
    }
    return input != NULL ? compose_input(load, input, depth + 1) : NULL;
}

static const struct pb_yaml *compose_input(struct pb_load *load, const struct pb_yaml *input,
                                           int depth)
{
    const struct pb_yaml *name = is_word(input)  ? input
                                 : is_map(input) ? pb_yaml_find(input, "preset", NULL)
                                                 : NULL;
    if (name == NULL)
        return input;
    char found[80];
    if (!is_word(name)) {
        WRONG(load, name, "input.preset must be the name of a preset, not %s",
              pb_yaml_what(name, found, sizeof found));
        return NULL;
    }
    const struct pb_yaml *base = preset_input(load, name, depth);
    if (base == NULL || base->kind != PB_YAML_MAP)
        return base;
    return is_map(input) ? put_input(load, base, input) : base;
}

/* --- mask ------------------------------------------------------------------------------------- */

/* The keys of input.quality, as parameters of mask. */
static const char *const quality_keys[] = {"band", "preset"};

/* A mask without a band or a range of its own. */
static const struct pb_yaml *fill_mask(struct pb_load *load, const struct pb_yaml *entry,
                                       const struct pb_yaml *quality)
{
    const struct pb_yaml *name = is_map(entry) && entry->n == 1 ? entry->keys[0] : entry;
    const struct pb_yaml *own = name != entry && is_map(entry->items[0]) ? entry->items[0] : NULL;
    if (!is_word(name) || strcmp(name->text, "mask") != 0 ||
        (own == NULL && name != entry && !pb_yaml_is_null(entry->items[0])) ||
        pb_yaml_find(own, "band", NULL) != NULL || pb_yaml_find(own, "bands", NULL) != NULL)
        return entry;
    const struct pb_yaml empty = {
        .kind = PB_YAML_MAP, .line = name->line, .col = name->col, .nodes = 1};
    struct pb_yaml *body = copy(load, own != NULL ? own : &empty, 2);
    struct pb_yaml *filled = copy(
        load, &(struct pb_yaml){.kind = PB_YAML_MAP, .line = entry->line, .col = entry->col}, 1);
    for (size_t i = 0; body != NULL && i < 2; i++) {
        const struct pb_yaml *value = pb_yaml_find(quality, quality_keys[i], NULL);
        const struct pb_yaml *key = word_at(load, name, quality_keys[i]);
        if (is_word(value) && key != NULL && pb_yaml_find(body, quality_keys[i], NULL) == NULL)
            pb_yaml_put(body, key, value);
    }
    if (body == NULL || filled == NULL)
        return entry;
    pb_yaml_put(filled, name, body);
    return filled;
}

static const struct pb_yaml *fill_steps(struct pb_load *load, const struct pb_yaml *steps,
                                        const struct pb_yaml *quality)
{
    struct pb_yaml *list = pb_arena_alloc(load->arena, 1, sizeof *list);
    const struct pb_yaml **items = pb_arena_alloc(load->arena, steps->n + 1, sizeof *items);
    if (list == NULL || items == NULL)
        return steps;
    *list = *steps;
    list->items = items;
    for (size_t i = 0; i < steps->n; i++)
        items[i] = fill_mask(load, steps->items[i], quality);
    return list;
}

/* --- pipelines -------------------------------------------------------------------------------- */

static const struct pb_yaml *compose_pipeline(struct pb_load *load, const struct pb_yaml *body)
{
    const struct pb_yaml *input_key = NULL, *steps_key = NULL;
    const struct pb_yaml *input = pb_yaml_find(body, "input", &input_key);
    const struct pb_yaml *steps = pb_yaml_find(body, "steps", &steps_key);
    const struct pb_yaml *whole = input != NULL ? compose_input(load, input, 0) : NULL;
    const struct pb_yaml *quality = pb_yaml_find(whole, "quality", NULL);
    struct pb_yaml *map = copy(load, body, 0);
    if (map == NULL || input == NULL)
        return body;
    if (whole == NULL) /* the mistake is reported: nothing follows from the input */
        map->damaged = true;
    pb_yaml_put(map, input_key, whole != NULL ? whole : word_at(load, input, "null"));
    if (is_map(quality) && steps != NULL && steps->kind == PB_YAML_LIST)
        pb_yaml_put(map, steps_key, fill_steps(load, steps, quality));
    return map;
}

/* Adds the pipelines of a file to the map, which has room; a name that is there is a mistake. */
static void join(struct pb_load *load, struct pb_yaml *map, const struct pb_yaml *pipelines)
{
    for (size_t i = 0; i < pipelines->n; i++) {
        const struct pb_yaml *key = pipelines->keys[i], *first = NULL;
        if (pb_yaml_find(map, key->text, &first) != NULL) {
            WRONG(load, key, "a pipeline '%.63s' is in %s:%d already; rename or remove one",
                  key->text, load->files->name[first->line / PB_FILE_LINES],
                  first->line % PB_FILE_LINES);
            continue;
        }
        pb_yaml_put(map, key, pipelines->items[i]);
    }
}

/* The pipelines of a file of pipelines.d; NULL: it is empty, or a mistake is reported. */
static const struct pb_yaml *pipelines_of(struct pb_load *load, int number)
{
    static const char *const keys[] = {"pipelines"};
    const struct pb_yaml *root = pb_config_files_root(load, number);
    char found[80];
    if (root == NULL || pb_yaml_is_null(root))
        return NULL;
    const struct pb_yaml *pipelines = pb_yaml_find(root, "pipelines", NULL);
    if (is_map(root))
        pb_report_unknown(load, root, "a file of pipelines.d", keys, 1);
    if (is_map(pipelines))
        return pipelines;
    if (pipelines != NULL || !is_map(root))
        WRONG(load, pipelines != NULL ? pipelines : root,
              "a file of pipelines.d is a map 'pipelines' of pipelines, not %s",
              pb_yaml_what(pipelines != NULL ? pipelines : root, found, sizeof found));
    return NULL;
}

const struct pb_yaml *pb_compose(struct pb_load *load, const struct pb_yaml *root)
{
    const struct pb_yaml *key = NULL, *own = pb_yaml_find(root, "pipelines", &key);
    const struct pb_yaml none = {.kind = PB_YAML_MAP, .line = root->line, .col = root->col};
    const struct pb_yaml *more[PB_CONFIG_FILES_MAX];
    size_t n = 0, n_more = 0;
    for (int i = 1; i < (int)load->files->n && load->files->role[i] != PB_FILE_PRESET; i++)
        if ((more[n] = pipelines_of(load, i)) != NULL)
            n_more += more[n++]->n;
    if ((own == NULL && n == 0) || (own != NULL && !is_map(own) && !pb_yaml_is_null(own)))
        return root;
    struct pb_yaml *map = copy(load, is_map(own) ? own : &none, n_more);
    struct pb_yaml *whole = copy(load, root, 1);
    key = key != NULL ? key : word_at(load, root, "pipelines");
    if (map == NULL || whole == NULL || key == NULL)
        return root;
    for (size_t i = 0; i < n; i++)
        join(load, map, more[i]);
    for (size_t i = 0; i < map->n && !pb_arena_failed(load->arena); i++)
        map->items[i] = compose_pipeline(load, map->items[i]);
    pb_yaml_put(whole, key, map);
    return whole;
}
