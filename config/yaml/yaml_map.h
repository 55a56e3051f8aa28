/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_YAML_MAP_H
#define PB_YAML_MAP_H
/* The end of a list or map: its children as arrays, and what is wrong with its keys. One thread. */
#include "config/yaml/yaml_tree.h"

#include <stdbool.h>

struct pb_arena;
struct pb_report;

/* In the order of the file. */
struct pb_yaml_child {
    struct pb_yaml_child *next;
    const struct pb_yaml *key, *item; /* key NULL: of a list */
};

/* Moves the node's n children into arrays of the arena and reports keys that are there twice, which
 * damage the map. 0 or -ENOMEM. */
int pb_yaml_lay_out(struct pb_arena *arena, struct pb_report *report, struct pb_yaml *node,
                    const struct pb_yaml_child *children);
/* Whether a key can be kept; reports why not. */
bool pb_yaml_key_is_good(struct pb_report *report, const struct pb_yaml *key);
#endif
