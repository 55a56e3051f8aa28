/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_YAML_TREE_H
#define PB_YAML_TREE_H
/* One YAML document as a tree in which every node has its place in the file. Nodes live in the
 * caller's arena and are read-only; an alias shares the node of its anchor, so the tree may be a
 * graph without cycles. Refused: more than PB_CONFIG_BYTES_MAX bytes, nesting over
 * PB_CONFIG_DEPTH_MAX, more than PB_YAML_NODES_MAX nodes with all aliases expanded, or
 * PB_YAML_ANCHORS_MAX anchors, another encoding than UTF-8, several documents, the same key twice,
 * keys that are not words, merge keys (<<), tags other than the standard ones, and characters that
 * cannot be printed. */
#include <stdbool.h>
#include <stddef.h>

#define PB_CONFIG_BYTES_MAX (1024 * 1024)
#define PB_CONFIG_DEPTH_MAX 32

struct pb_arena;
struct pb_report;

#define PB_YAML_NODES_MAX   50000
#define PB_YAML_ANCHORS_MAX 1000

enum pb_yaml_kind { PB_YAML_SCALAR, PB_YAML_LIST, PB_YAML_MAP };

struct pb_yaml {
    enum pb_yaml_kind kind;
    int line, col;           /* 1-based; 0 = not from a file */
    int text_line, text_col; /* first character of a scalar's text: behind a quote, below a | */
    const char *text;        /* scalars; NUL-terminated, no NUL inside */
    bool plain;              /* written without quotes: may be a number, a boolean or null */
    size_t n;                /* children of lists and maps */
    const struct pb_yaml **items;
    const struct pb_yaml **keys; /* maps: scalars, keys[i] belongs to items[i] */
    bool damaged;                /* it contains a duplicate or dropped key, or an invalid text */
    unsigned nodes, height;      /* with aliases expanded; a scalar is 1 and 0 */
};

/* Parses. 0 with *out_root (NULL when the document is empty); mistakes that leave a tree (duplicate
 * keys and the like) are in the report then too. Negative errno with the reason in the report, but
 * for -ENOMEM, which the caller reports. text is borrowed for the call. Thread: any. */
int pb_yaml_parse(const char *text, size_t bytes, struct pb_arena *arena, struct pb_report *report,
                  const struct pb_yaml **out_root);
/* The same of the file with this number (yaml/report.h), which is in the lines of its nodes. */
int pb_yaml_parse_file(const char *text, size_t bytes, int number, struct pb_arena *arena,
                       struct pb_report *report, const struct pb_yaml **out_root);

/* A new map with the entries of `map` and room for n_more, which pb_yaml_put adds; NULL = no
 * memory. */
struct pb_yaml *pb_yaml_copy_map(struct pb_arena *arena, const struct pb_yaml *map, size_t n_more);
/* Sets the value of a key in such a map; a new key takes a place that n_more left free. */
void pb_yaml_put(struct pb_yaml *map, const struct pb_yaml *key, const struct pb_yaml *item);

/* Value of a key, NULL = none or not a map. out_key may be NULL. */
const struct pb_yaml *pb_yaml_find(const struct pb_yaml *map, const char *key,
                                   const struct pb_yaml **out_key);
/* Whether the node is "nothing": an empty, ~ or null scalar without quotes. */
bool pb_yaml_is_null(const struct pb_yaml *node);
/* "a list", "a map", "empty", "'text'" (shortened): for messages. Returns out. */
const char *pb_yaml_what(const struct pb_yaml *node, char *out, size_t out_bytes);
#endif
