/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_META_TREE_H
#define PB_META_TREE_H
/* One tree for all notations of metadata: XML (meta_xml.c), the keyword text of MTL and IMD
 * files (meta_odl.c) and JSON (meta_json.c). A node has a name without its namespace, a text
 * that may be "", and children; attributes of XML are children called "@name". The tree's arena
 * owns everything. One thread. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct pb_arena;

#define PB_META_DEPTH_MAX 40
#define PB_META_NODES_MAX 400000

struct pb_meta_node {
    const char *name, *text;
    struct pb_meta_node *parent, *first, *last, *next;
    size_t n; /* count of children */
};

struct pb_meta_tree {
    struct pb_arena *arena;
    struct pb_meta_node *root; /* a node without name; the document is its child */
    const char *name;          /* name of the file, for messages; borrowed */
    size_t n_nodes;
};

/* Parses any of the notations. input.metadata_invalid names the place if it is known. */
int pb_meta_tree_parse(const char *name, const char *text, size_t bytes, struct pb_meta_tree *out,
                       struct pb_err *err);
void pb_meta_tree_fini(struct pb_meta_tree *tree); /* a zeroed one is fine */

/* For the parsers. Appends a child; NULL after a failure, which is in *err. text may be NULL. */
struct pb_meta_node *pb_meta_add(struct pb_meta_tree *tree, struct pb_meta_node *parent,
                                 const char *name, size_t name_bytes, const char *text,
                                 size_t text_bytes, struct pb_err *err);
int pb_meta_parse_xml(struct pb_meta_tree *tree, const char *text, size_t bytes,
                      struct pb_err *err);
int pb_meta_parse_odl(struct pb_meta_tree *tree, const char *text, size_t bytes,
                      struct pb_err *err);
int pb_meta_parse_json(struct pb_meta_tree *tree, const char *text, size_t bytes,
                       struct pb_err *err);
/* Fails with input.metadata_invalid of this file, with a line if it is not 0. */
int pb_meta_bad(const struct pb_meta_tree *tree, int line, struct pb_err *err, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* --- looking ---------------------------------------------------------------------------------
 * All accept NULL and find nothing in it. */

/* Returns the child of that name; for "A/B" the first B in the first A that has one. */
const struct pb_meta_node *pb_meta_child(const struct pb_meta_node *node, const char *path);
/* Returns the first node of that name below node, in the order of the document; with `after` the
 * first one after that node. */
const struct pb_meta_node *pb_meta_below(const struct pb_meta_node *node, const char *name,
                                         const struct pb_meta_node *after);
/* Return the text of the node found; NULL = not found. */
const char *pb_meta_text(const struct pb_meta_node *node, const char *path);
const char *pb_meta_text_below(const struct pb_meta_node *node, const char *name);
#endif
