/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Queries about nodes; independent of libyaml. */
#include "config/yaml/yaml_tree.h"

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
