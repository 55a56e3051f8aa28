/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Queries about nodes; independent of libyaml. */
#include "config/yaml/yaml_tree.h"

#include "config/base/arena.h"

#include <stdio.h>
#include <string.h>

const struct pb_yaml *pb_yaml_find(const struct pb_yaml *map, const char *key,
                                   const struct pb_yaml **out_key)
{
    if (map == NULL || map->kind != PB_YAML_MAP)
        return NULL;
    for (size_t i = 0; i < map->n; i++) {
        if (strcmp(map->keys[i]->text, key) != 0)
            continue;
        if (out_key)
            *out_key = map->keys[i];
        return map->items[i];
    }
    return NULL;
}

bool pb_yaml_is_null(const struct pb_yaml *node)
{
    return node->kind == PB_YAML_SCALAR && node->plain &&
           (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}

const char *pb_yaml_what(const struct pb_yaml *node, char *out, size_t out_bytes)
{
    if (node->kind != PB_YAML_SCALAR)
        (void)snprintf(out, out_bytes, "%s", node->kind == PB_YAML_LIST ? "a list" : "a map");
    else if (pb_yaml_is_null(node))
        (void)snprintf(out, out_bytes, "empty");
    else
        (void)snprintf(out, out_bytes, "'%.60s%s'", node->text,
                       strlen(node->text) > 60 ? "..." : "");
    return out;
}

struct pb_yaml *pb_yaml_copy_map(struct pb_arena *arena, const struct pb_yaml *map, size_t n_more)
{
    struct pb_yaml *copy = pb_arena_alloc(arena, 1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = *map;
    copy->items = pb_arena_alloc(arena, map->n + n_more + 1, sizeof *copy->items);
    copy->keys = pb_arena_alloc(arena, map->n + n_more + 1, sizeof *copy->keys);
    if (copy->items == NULL || copy->keys == NULL)
        return NULL;
    for (size_t i = 0; i < map->n; i++) {
        copy->items[i] = map->items[i];
        copy->keys[i] = map->keys[i];
    }
    return copy;
}

void pb_yaml_put(struct pb_yaml *map, const struct pb_yaml *key, const struct pb_yaml *item)
{
    size_t at = 0;
    while (at < map->n && strcmp(map->keys[at]->text, key->text) != 0)
        at++;
    map->n += at == map->n;
    map->keys[at] = key;
    map->items[at] = item;
    map->damaged = map->damaged || item->damaged;
}
