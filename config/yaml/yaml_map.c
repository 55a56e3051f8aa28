/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Duplicate keys are found by sorting, because comparing each with each would take minutes on a
 * megabyte of keys. */
#include "config/yaml/yaml_map.h"

#include "config/base/arena.h"
#include "config/yaml/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_key(const void *a, const void *b)
{
    const struct pb_yaml *x = *(const struct pb_yaml *const *)a;
    const struct pb_yaml *y = *(const struct pb_yaml *const *)b;
    int order = strcmp(x->text, y->text);
    if (order == 0)
        order = x->line != y->line ? (x->line < y->line ? -1 : 1) : x->col - y->col;
    return order;
}

static int report_duplicates(struct pb_arena *arena, struct pb_report *report, struct pb_yaml *map)
{
    const struct pb_yaml **keys = pb_arena_alloc(arena, map->n, sizeof *keys);
    if (keys == NULL)
        return -ENOMEM;
    memcpy(keys, map->keys, map->n * sizeof *keys);
    qsort(keys, map->n, sizeof *keys, by_key);
    for (size_t i = 1; i < map->n; i++)
        if (strcmp(keys[i]->text, keys[i - 1]->text) == 0) {
            map->damaged = true;
            pb_report(report, PB_E_CONFIG_SYNTAX, keys[i]->line, keys[i]->col,
                      "the key '%.80s' is here twice (first in line %d); keep one", keys[i]->text,
                      keys[i - 1]->line % PB_FILE_LINES);
        }
    return 0;
}

int pb_yaml_lay_out(struct pb_arena *arena, struct pb_report *report, struct pb_yaml *node,
                    const struct pb_yaml_child *children)
{
    node->items = pb_arena_alloc(arena, node->n, sizeof *node->items);
    node->keys = pb_arena_alloc(arena, node->n, sizeof *node->keys);
    if (node->items == NULL || node->keys == NULL)
        return -ENOMEM;
    size_t i = 0;
    for (const struct pb_yaml_child *child = children; child; child = child->next, i++) {
        node->items[i] = child->item;
        node->keys[i] = child->key;
        node->damaged =
            node->damaged || child->item->damaged || (child->key && child->key->damaged);
        node->nodes += child->item->nodes + (child->key ? 1 : 0);
        if (child->item->height + 1 > node->height)
            node->height = child->item->height + 1;
    }
    return node->kind == PB_YAML_MAP && node->n > 1 ? report_duplicates(arena, report, node) : 0;
}

bool pb_yaml_key_is_good(struct pb_report *report, const struct pb_yaml *key)
{
    if (key->kind != PB_YAML_SCALAR) {
        pb_report(report, PB_E_CONFIG_SYNTAX, key->line, key->col,
                  "a key must be a word, not %s; a text with braces or brackets needs quotes",
                  key->kind == PB_YAML_LIST ? "a list" : "a map");
        return false;
    }
    if (key->plain && strcmp(key->text, "<<") == 0) {
        pb_report(report, PB_E_CONFIG_SYNTAX, key->line, key->col,
                  "merge keys (<<) are not supported; write the keys out, or use an alias (*name) "
                  "as the whole value");
        return false;
    }
    return true;
}
