/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Keys whose value is a list or map of entries that keep their places: names, expressions, numbers.
 * The owner of the key interprets the entries: an operator's build() checks them. */
#include "config/schema_values.h"

#include "config/base/arena.h"
#include "config/yaml/yaml_tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)
#define ITEMS_MAX 4096

/* One key being read. */
struct reading {
    struct pb_load *load;
    const struct pb_key *key;
    const char *what;  /* "index.names" */
    const char *entry; /* "an entry of index.names", or what when there is one value only */
};

static bool read_text(const struct reading *r, const struct pb_yaml *node, const char *kind)
{
    if (!pb_need_scalar(r->load, node, r->entry, kind))
        return false;
    if (node->text[0])
        return true;
    WRONG(r->load, node, "%s has an empty text; write %s", r->entry, kind);
    return false;
}

/* The name of a band that the user chooses. */
static bool read_key(const struct reading *r, const struct pb_yaml *key)
{
    if (pb_is_identifier(key->text))
        return true;
    WRONG(r->load, key,
          "%s: '%.80s' cannot be a band's name; use letters, digits and '_', no digit first; a "
          "text with commas or braces must be in quotes",
          r->what, key->text);
    return false;
}

/* A number, or a word that whoever owns the key knows. */
static bool read_word(const struct reading *r, const struct pb_yaml *node, double *out_number)
{
    const char first = node->kind == PB_YAML_SCALAR ? node->text[0] : '\0';
    bool is_number = (first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.';
    *out_number = (double)NAN;
    if (!is_number)
        return read_text(r, node, "a word or a number");
    return pb_read_number(r->load, r->key, node, r->what, out_number);
}

/* One scalar; its kind follows from the key's type. */
static bool read_item(const struct reading *r, const struct pb_yaml *key,
                      const struct pb_yaml *node, struct pb_item *out_item)
{
    bool good = key == NULL || read_key(r, key);
    if (r->key->type == PB_KEY_EXPRESSIONS || r->key->type == PB_KEY_EXPRESSION)
        good = read_text(r, node, "an expression") && good;
    else if (r->key->type == PB_KEY_WORDS)
        good = read_word(r, node, &out_item->num) && good;
    else if (r->key->type == PB_KEY_NAMES)
        good = read_text(r, node, "a name") && good;
    else if (r->key->type == PB_KEY_BAND)
        good = read_text(r, node, "a name") && read_key(r, node) && good;
    else
        good = pb_need_scalar(r->load, node, r->entry, "a number") &&
               pb_read_number(r->load, r->key, node, r->what, &out_item->num) && good;
    if (!good)
        return false;
    /* The texts are nodes' own: they live in the arena as long as the configuration. */
    out_item->key = key ? key->text : NULL;
    out_item->text = node->text;
    out_item->line = node->text_line;
    out_item->col = node->text_col;
    return true;
}

/* {A: max(R, 0)} without quotes is {A: "max(R", "0)": nothing} to YAML. */
static bool is_cut_at_comma(const struct reading *r, const struct pb_yaml *map, size_t i)
{
    if (r->key->type != PB_KEY_EXPRESSIONS || i + 1 >= map->n ||
        map->items[i]->kind != PB_YAML_SCALAR || pb_is_identifier(map->keys[i + 1]->text))
        return false;
    int open = 0;
    for (const char *c = map->items[i]->text; *c; c++)
        open += (*c == '(') - (*c == ')');
    if (open <= 0)
        return false;
    WRONG(r->load, map->items[i], "%s: '%.80s' was cut at its comma; put the expression in quotes",
          r->what, map->items[i]->text);
    return true;
}

static const char *form_of(enum pb_key_type type)
{
    switch (type) {
    case PB_KEY_NAMES:
        return "a list of names, such as [NDVI, EVI], or a map {NEW: NAME}";
    case PB_KEY_EXPRESSION:
        return "an expression, such as \"QA < 3\"";
    case PB_KEY_BAND:
        return "a name, such as CLASS";
    case PB_KEY_EXPRESSIONS:
        return "a map of names and expressions, such as {WATER: \"(G - N) / (G + N)\"}";
    case PB_KEY_NUMBERS:
        return "a number, or a map of names and numbers, such as {R: 0.5}";
    case PB_KEY_CONSTANTS:
        return "a map of names and numbers, such as {L: 0.5}";
    case PB_KEY_VECTORS:
        return "a map of names and lists of numbers, such as {SOIL: [0.1, 0.2], WATER: [0.05, 0]}";
    case PB_KEY_WORDS:
        return "a list of numbers and words, such as [0, 1, cloud]";
    default:
        return "a list of numbers, row after row, such as [0, -1, 0, -1, 4, -1, 0, -1, 0]";
    }
}

static bool form_fits(enum pb_key_type type, enum pb_yaml_kind kind)
{
    switch (type) {
    case PB_KEY_NAMES:
        return kind != PB_YAML_SCALAR;
    case PB_KEY_EXPRESSION:
    case PB_KEY_BAND:
        return kind == PB_YAML_SCALAR;
    case PB_KEY_NUMBERS:
        return kind != PB_YAML_LIST;
    case PB_KEY_WEIGHTS:
    case PB_KEY_WORDS:
        return kind == PB_YAML_LIST;
    default:
        return kind == PB_YAML_MAP;
    }
}

/* {NAME: [1, 2], ...}: the numbers of one name after those of another. */
static void read_vectors(const struct reading *r, const struct pb_yaml *map,
                         struct pb_items *out_items)
{
    size_t n = 0, good = 0;
    for (size_t i = 0; i < map->n; i++)
        n += map->items[i]->kind == PB_YAML_LIST ? map->items[i]->n : 0;
    struct pb_item *items = pb_arena_alloc(r->load->arena, n + 1, sizeof *items);
    for (size_t i = 0; items && i < map->n; i++) {
        const struct pb_yaml *list = map->items[i];
        if (list->kind != PB_YAML_LIST || list->n == 0 || n > ITEMS_MAX) {
            WRONG(r->load, list, "%s: write a list of 1 to %d numbers", r->what, ITEMS_MAX);
            return;
        }
        for (size_t k = 0; k < list->n; k++)
            good += read_item(r, map->keys[i], list->items[k], &items[good]);
    }
    *out_items = (struct pb_items){items, good, good < n};
}

void pb_read_items(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                   const char *what, struct pb_items *out_items)
{
    char found[80], entry[120];
    bool scalar = node->kind == PB_YAML_SCALAR;
    (void)snprintf(entry, sizeof entry, "an entry of %s", what);
    struct reading r = {load, key, what, scalar ? what : entry};
    *out_items = (struct pb_items){.is_partial = true};
    if (!form_fits(key->type, node->kind) || pb_yaml_is_null(node)) {
        WRONG(load, node, "%s must be %s, not %s", what, form_of(key->type),
              pb_yaml_what(node, found, sizeof found));
        return;
    }
    size_t n = scalar ? 1 : node->n, good = 0;
    if (n == 0 || n > ITEMS_MAX) {
        WRONG(load, node, "%s has %zu entries; write 1 to %d", what, n, ITEMS_MAX);
        return;
    }
    if (key->type == PB_KEY_VECTORS) {
        read_vectors(&r, node, out_items);
        return;
    }
    struct pb_item *items = pb_arena_alloc(load->arena, n, sizeof *items);
    for (size_t i = 0;
         items && i < n && !(node->kind == PB_YAML_MAP && is_cut_at_comma(&r, node, i)); i++)
        good += read_item(&r, scalar ? NULL : node->keys[i], scalar ? node : node->items[i],
                          &items[good]);
    *out_items = (struct pb_items){items, good, good < n};
}
