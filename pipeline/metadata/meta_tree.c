/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata/meta_tree.h"

#include "config/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int pb_meta_bad(const struct pb_meta_tree *tree, int line, struct pb_err *err, const char *format,
                ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return pb_fail_at(err, PB_E_INPUT_METADATA_INVALID, tree->name, line, 0, "%s", text);
}

struct pb_meta_node *pb_meta_add(struct pb_meta_tree *tree, struct pb_meta_node *parent,
                                 const char *name, size_t name_bytes, const char *text,
                                 size_t text_bytes, struct pb_err *err)
{
    if (++tree->n_nodes > PB_META_NODES_MAX) {
        (void)pb_meta_bad(tree, 0, err, "it has more than %d entries", PB_META_NODES_MAX);
        return NULL;
    }
    struct pb_meta_node *node = pb_arena_alloc(tree->arena, 1, sizeof *node);
    if (node != NULL) {
        node->name = pb_arena_text(tree->arena, name, name_bytes);
        node->text = text_bytes > 0 ? pb_arena_text(tree->arena, text, text_bytes) : "";
    }
    if (node == NULL || node->name == NULL || node->text == NULL) {
        (void)pb_fail(err, PB_E_MEMORY, "no memory for the scene's metadata");
        return NULL;
    }
    node->parent = parent;
    if (parent != NULL && parent->last != NULL)
        parent->last->next = node;
    else if (parent != NULL)
        parent->first = node;
    if (parent != NULL) {
        parent->last = node;
        parent->n++;
    }
    return node;
}

static int check_text(const struct pb_meta_tree *tree, const char *text, size_t bytes,
                      struct pb_err *err)
{
    int line = 1;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        line += c == '\n';
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') || c == 0x7f)
            return pb_meta_bad(tree, line, err, "this is no text: byte %zu is 0x%02x", i, c);
    }
    return 0;
}

static size_t skip_space(const char *text, size_t bytes)
{
    size_t at = bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < bytes && strchr(" \t\r\n", text[at]) != NULL)
        at++;
    return at;
}

int pb_meta_tree_parse(const char *name, const char *text, size_t bytes, struct pb_meta_tree *out,
                       struct pb_err *err)
{
    struct pb_meta_tree tree = {.arena = pb_arena_create(), .name = name};
    size_t at = skip_space(text, bytes);
    tree.root = pb_meta_add(&tree, NULL, "", 0, NULL, 0, err);
    int rc = tree.root == NULL ? pb_fail(err, PB_E_MEMORY, "no memory for the scene's metadata")
                               : check_text(&tree, text, bytes, err);
    if (rc == 0 && at == bytes)
        rc = pb_meta_bad(&tree, 0, err, "it is empty");
    else if (rc == 0 && text[at] == '<')
        rc = pb_meta_parse_xml(&tree, text + at, bytes - at, err);
    else if (rc == 0 && text[at] == '{')
        rc = pb_meta_parse_json(&tree, text + at, bytes - at, err);
    else if (rc == 0)
        rc = pb_meta_parse_odl(&tree, text + at, bytes - at, err);
    if (rc < 0) {
        pb_meta_tree_fini(&tree);
        return rc;
    }
    *out = tree;
    return 0;
}

void pb_meta_tree_fini(struct pb_meta_tree *tree)
{
    pb_arena_destroy(tree->arena);
    tree->arena = NULL;
    tree->root = NULL;
}

/* --- looking ---------------------------------------------------------------------------------- */

static const struct pb_meta_node *child_of(const struct pb_meta_node *node, const char *path,
                                           size_t bytes, const char *rest)
{
    for (const struct pb_meta_node *c = node->first; c != NULL; c = c->next) {
        if (strncmp(c->name, path, bytes) != 0 || c->name[bytes] != '\0')
            continue;
        const struct pb_meta_node *found = rest != NULL ? pb_meta_child(c, rest) : c;
        if (found != NULL)
            return found;
    }
    return NULL;
}

const struct pb_meta_node *pb_meta_child(const struct pb_meta_node *node, const char *path)
{
    const char *slash = strchr(path, '/');
    if (node == NULL)
        return NULL;
    return child_of(node, path, slash ? (size_t)(slash - path) : strlen(path),
                    slash ? slash + 1 : NULL);
}

/* Returns the next node in the order of the document, within `top`. */
static const struct pb_meta_node *step(const struct pb_meta_node *top,
                                       const struct pb_meta_node *node)
{
    if (node->first != NULL)
        return node->first;
    while (node != top && node->next == NULL)
        node = node->parent;
    return node == top ? NULL : node->next;
}

const struct pb_meta_node *pb_meta_below(const struct pb_meta_node *node, const char *name,
                                         const struct pb_meta_node *after)
{
    if (node == NULL)
        return NULL;
    const struct pb_meta_node *at = step(node, after != NULL ? after : node);
    while (at != NULL && strcmp(at->name, name) != 0)
        at = step(node, at);
    return at;
}

const char *pb_meta_text(const struct pb_meta_node *node, const char *path)
{
    const struct pb_meta_node *found = pb_meta_child(node, path);
    return found != NULL ? found->text : NULL;
}

const char *pb_meta_text_below(const struct pb_meta_node *node, const char *name)
{
    const struct pb_meta_node *found = pb_meta_below(node, name, NULL);
    return found != NULL ? found->text : NULL;
}
