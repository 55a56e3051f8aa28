/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Walks a table of keys over a map. Defaults pass through the same readers as values of the
 * file. */
#include "config/schema_values.h"

#include "config/base/arena.h"
#include "config/yaml/yaml_tree.h"
#include "kernels/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)

bool pb_is_identifier(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t length = strlen(text);
    return length > 0 && length <= 63 && !(text[0] >= '0' && text[0] <= '9') &&
           strspn(text, letters) == length;
}

bool pb_is_file_word(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-.";
    size_t length = strlen(text);
    return length > 0 && length <= 63 && text[0] != '.' && text[0] != '-' &&
           strspn(text, letters) == length;
}

size_t pb_split_choices(struct pb_load *load, const char *choices, const char **out_words)
{
    size_t n = 0;
    while (n < PB_CHOICES_MAX && *choices) {
        size_t length = strcspn(choices, "|");
        const char *word = pb_arena_text(load->arena, choices, length);
        if (word == NULL)
            return n;
        out_words[n++] = word;
        choices += length;
        choices += *choices == '|';
    }
    return n;
}

bool pb_need_scalar(struct pb_load *load, const struct pb_yaml *node, const char *what,
                    const char *kind)
{
    char found[80];
    if (node->kind == PB_YAML_SCALAR && !pb_yaml_is_null(node))
        return true;
    WRONG(load, node, "%s must be %s, not %s", what, kind, pb_yaml_what(node, found, sizeof found));
    return false;
}

const struct pb_yaml *pb_default_node(struct pb_load *load, const char *text)
{
    const struct pb_yaml *node = NULL;
    int rc = pb_yaml_parse(text, strlen(text), load->arena, &load->report, &node);
    if (rc == -ENOMEM) { /* libyaml's own memory ran out: make the arena say so */
        pb_arena_fail(load->arena);
        return NULL;
    }
    return rc ? NULL : node;
}

static bool is_items(enum pb_key_type type)
{
    return type >= PB_KEY_NAMES && type <= PB_KEY_WORDS;
}

static void read_section(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                         char *base)
{
    pb_schema_read(load, key->section, node, base + key->offset);
    if (key->more)
        *(bool *)(base + key->more) = true;
}

static void read_value(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                       const char *what, char *base)
{
    void *at = base + key->offset, *more = base + key->more;
    if (is_items(key->type))
        pb_read_items(load, key, node, what, at);
    else if (key->type == PB_KEY_PAIR || key->type == PB_KEY_RANGE)
        pb_read_pair(load, key, node, what, base);
    else if (key->type == PB_KEY_PATTERNS || key->type == PB_KEY_PATHS ||
             key->type == PB_KEY_BANDS || key->type == PB_KEY_COMMAND ||
             key->type == PB_KEY_FILE_NAMES)
        pb_read_words(load, node, what, key->type, at, more);
    else if (key->type == PB_KEY_BAND_MAP)
        pb_read_band_map(load, node, what, at, more);
    else if (key->type == PB_KEY_SOURCES)
        pb_read_sources(load, node, what, at, more);
    else if (key->type == PB_KEY_FILES)
        pb_read_files(load, node, what, at, more);
    else if (key->type == PB_KEY_INBOXES)
        pb_read_inboxes(load, node, what, at, more);
    else if (key->type == PB_KEY_SECTION)
        read_section(load, key, node, base);
    else
        pb_read_scalar(load, key, node, what, base);
}

static bool is_one_of(const char *text, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

bool pb_is_misspelt(const struct pb_yaml *map, const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; map && map->kind == PB_YAML_MAP && i < map->n; i++)
        if (!is_one_of(map->keys[i]->text, names, n) && pb_nearest(map->keys[i]->text, &name, 1))
            return true;
    return false;
}

void pb_report_unknown(struct pb_load *load, const struct pb_yaml *map, const char *where,
                       const char *const *names, size_t n)
{
    char suggestion[400];
    for (size_t i = 0; i < map->n; i++)
        if (!is_one_of(map->keys[i]->text, names, n))
            WRONG(load, map->keys[i], "unknown key '%.80s' in %s%s", map->keys[i]->text, where,
                  pb_suggest(map->keys[i]->text, names, n, suggestion, sizeof suggestion));
}

#define KEYS_MAX 32

static size_t key_names(const struct pb_section *section, const char *names[KEYS_MAX])
{
    size_t n = section->n < KEYS_MAX ? section->n : KEYS_MAX;
    for (size_t i = 0; i < n; i++)
        names[i] = section->keys[i].name;
    return n;
}

void pb_schema_need(struct pb_load *load, const struct pb_section *section,
                    const struct pb_yaml *owner, const struct pb_yaml *map)
{
    const char *names[KEYS_MAX];
    size_t n = key_names(section, names);
    if (map && map->kind != PB_YAML_MAP)
        return;
    for (size_t i = 0; i < section->n; i++) {
        const struct pb_key *key = &section->keys[i];
        if (key->required && !pb_yaml_find(map, key->name, NULL) &&
            !pb_is_misspelt(map, key->name, names, n))
            WRONG(load, owner, "'%s' needs '%s': %s", section->name, key->name, key->doc);
    }
}

/* The default, from no file. */
static void read_default(struct pb_load *load, const struct pb_key *key, const char *what,
                         char *base)
{
    const struct pb_yaml *node = pb_default_node(load, key->def);
    if (node == NULL)
        return;
    read_value(load, key, node, what, base);
    struct pb_items *items = (struct pb_items *)(void *)(base + key->offset);
    for (size_t i = 0; is_items(key->type) && i < items->n; i++) {
        struct pb_item *item = (struct pb_item *)&items->items[i];
        item->line = item->col = 0;
    }
}

/* unknown: the map has keys that are not of the section. */
static void read_keys(struct pb_load *load, const struct pb_section *section,
                      const struct pb_yaml *map, bool unknown, void *base)
{
    for (size_t i = 0; i < section->n && !pb_arena_failed(load->arena); i++) {
        const struct pb_key *key = &section->keys[i];
        char what[100];
        (void)snprintf(what, sizeof what, "%s.%s", section->name, key->name);
        const struct pb_yaml *node = map ? pb_yaml_find(map, key->name, NULL) : NULL;
        if (key->def)
            read_default(load, key, what, base);
        else if (key->type == PB_KEY_SECTION && node == NULL)
            pb_schema_read(load, key->section, NULL, (char *)base + key->offset);
        if (node)
            read_value(load, key, node, what, base);
        else if (unknown && is_items(key->type)) /* the unknown key may be a misspelling of it */
            ((struct pb_items *)(void *)((char *)base + key->offset))->is_partial = true;
    }
}

void pb_schema_read(struct pb_load *load, const struct pb_section *section,
                    const struct pb_yaml *map, void *base)
{
    char found[80];
    const char *names[KEYS_MAX];
    size_t n = key_names(section, names), before = pb_report_count(&load->report);
    if (map && map->kind != PB_YAML_MAP) {
        if (!pb_yaml_is_null(map))
            WRONG(load, map, "'%s' must be a map of keys, not %s", section->name,
                  pb_yaml_what(map, found, sizeof found));
        map = NULL;
    }
    if (map)
        pb_report_unknown(load, map, section->name, names, n);
    read_keys(load, section, map, pb_report_count(&load->report) > before, base);
}

void pb_schema_read_own(struct pb_load *load, const struct pb_section *section,
                        const struct pb_yaml *map, void *base)
{
    read_keys(load, section, map, false, base);
}
