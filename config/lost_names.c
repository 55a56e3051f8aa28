/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/lost_names.h"

#include "config/base/arena.h"
#include "config/yaml/yaml_tree.h"
#include "kernels/graph/builder.h"

#include <string.h>

static int define_lost(const void *params, struct pb_builder *b)
{
    const struct pb_items *names = params;
    int rc = 0;
    for (size_t i = 0; i < names->n && rc == 0; i++)
        if (pb_builder_find(b, names->items[i].text) < 0)
            rc = pb_builder_define(b, names->items[i].text, PB_VALUE_POISON);
    return rc;
}

const struct pb_op pb_lost_names = {
    .name = "lost names", .params_bytes = sizeof(struct pb_items), .build = define_lost};

/* Names found so far; there is room for every node that is searched. */
struct search {
    struct pb_item *items;
    size_t n;
};

static void add(struct search *s, const struct pb_yaml *node)
{
    if (pb_is_identifier(node->text))
        s->items[s->n++].text = node->text;
}

/* Every word in a node; of maps the keys too, unless they are the file's own. */
static void collect(struct search *s, const struct pb_yaml *node, bool own_keys)
{
    if (node->kind == PB_YAML_SCALAR)
        add(s, node);
    for (size_t i = 0; node->kind != PB_YAML_SCALAR && i < node->n; i++) {
        if (node->kind == PB_YAML_MAP && !own_keys)
            add(s, node->keys[i]);
        collect(s, node->items[i], false);
    }
}

/* The value of a parameter. Of a map the keys are names of bands made and of constants; parameters
 * of other types name nothing. */
static void collect_value(struct search *s, const struct pb_load *load, const struct pb_key *key,
                          const struct pb_yaml *value)
{
    bool names_constants = key->type == PB_KEY_NUMBERS || key->type == PB_KEY_CONSTANTS;
    if ((!key->makes_bands && !names_constants) || !pb_has_mistake(load, value))
        return;
    if (value->kind != PB_YAML_MAP)
        collect(s, value, false);
    for (size_t i = 0; value->kind == PB_YAML_MAP && i < value->n; i++)
        add(s, value->keys[i]);
}

static const struct pb_key *find_key(const struct pb_op *op, const char *name)
{
    for (size_t i = 0; i < op->n_keys; i++)
        if (strcmp(op->keys[i].name, name) == 0)
            return &op->keys[i];
    return NULL;
}

static bool open_search(struct search *s, struct pb_arena *arena, const struct pb_yaml *node)
{
    s->n = 0;
    s->items = pb_arena_alloc(arena, node->nodes + 1, sizeof *s->items);
    return s->items != NULL;
}

bool pb_lost_of_entry(struct pb_arena *arena, const struct pb_load *load,
                      const struct pb_yaml *entry, const struct pb_op *op,
                      struct pb_items *out_names)
{
    bool one = entry->kind == PB_YAML_MAP && entry->n == 1;
    const struct pb_yaml *body = one ? entry->items[0] : NULL;
    struct search s;
    if (!open_search(&s, arena, entry))
        return false;
    if (op && body && body->kind == PB_YAML_MAP) {
        for (size_t i = 0; i < body->n; i++) {
            const struct pb_key *key = find_key(op, body->keys[i]->text);
            if (key)
                collect_value(&s, load, key, body->items[i]);
            else
                collect(&s, body->items[i], false);
        }
    } else { /* what was meant to be "name: {param: ...}" */
        for (size_t i = 0; entry->kind != PB_YAML_SCALAR && i < entry->n; i++)
            collect(&s, entry->items[i], one);
    }
    *out_names = (struct pb_items){.items = s.items, .n = s.n};
    return true;
}

bool pb_lost_of_body(struct pb_arena *arena, const struct pb_yaml *body,
                     const struct pb_pipeline_notes *notes, struct pb_items *out_names)
{
    struct search s;
    if (!open_search(&s, arena, body))
        return false;
    for (size_t i = 0; i < body->n; i++) {
        const char *key = body->keys[i]->text;
        bool input = strcmp(key, "input") == 0;
        if (strcmp(key, "steps") != 0 && strcmp(key, "products") != 0 &&
            !(input && notes->input_is_sound))
            collect(&s, body->items[i], input);
    }
    *out_names = (struct pb_items){.items = s.items, .n = s.n};
    return true;
}
