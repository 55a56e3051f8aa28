/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Keyword text of Landsat's MTL and of DigitalGlobe's IMD files: KEY = value, enclosed by GROUP
 * = NAME .. END_GROUP = NAME (BEGIN_GROUP in IMD). Values may be quoted, end with a semicolon,
 * or be a list in parentheses over several lines, which is stored as text. A repeated key in a
 * group is refused, because the valid one is unknown. */
#include "pipeline/metadata/meta_tree.h"

#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096, KEYS_MAX = 4096 /* keys of a group */ };

struct state {
    struct pb_meta_tree *tree;
    struct pb_meta_node *at;
    int depth, line;
    bool ended;  /* END was read; some deliveries omit it */
    bool closed; /* the last line has closed the last group */
    struct pb_err *err;
};

struct part {
    const char *text;
    size_t n;
};

static struct part trimmed(const char *text, size_t n)
{
    while (n > 0 && strchr(" \t\r\f", text[0]) != NULL)
        text++, n--;
    while (n > 0 && strchr(" \t\r\f", text[n - 1]) != NULL)
        n--;
    return (struct part){text, n};
}

static bool is(struct part part, const char *word)
{
    return part.n == strlen(word) && memcmp(part.text, word, part.n) == 0;
}

static bool is_key(struct part key)
{
    for (size_t i = 0; i < key.n; i++) {
        char c = key.text[i];
        bool good = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '.' || c == '-' || c == '^' || c == ':';
        if (!good)
            return false;
    }
    return key.n > 0 && key.n < 128;
}

static struct part unquoted(struct part value)
{
    if (value.n > 0 && value.text[value.n - 1] == ';')
        value = trimmed(value.text, value.n - 1);
    if (value.n >= 2 && value.text[0] == '"' && value.text[value.n - 1] == '"')
        value = (struct part){value.text + 1, value.n - 2};
    return value;
}

static int begin_group(struct state *s, struct part name)
{
    if (s->at->n >= KEYS_MAX)
        return pb_meta_bad(s->tree, s->line, s->err, "a group has more than %d keys", KEYS_MAX);
    if (++s->depth > PB_META_DEPTH_MAX)
        return pb_meta_bad(s->tree, s->line, s->err, "groups are nested more than %d deep",
                           PB_META_DEPTH_MAX);
    s->at = pb_meta_add(s->tree, s->at, name.text, name.n, NULL, 0, s->err);
    return s->at != NULL ? 0 : -1;
}

static int end_group(struct state *s, struct part name)
{
    if (s->depth == 0)
        return pb_meta_bad(s->tree, s->line, s->err, "END_GROUP without a group");
    if (name.n > 0 && !is(name, s->at->name))
        return pb_meta_bad(s->tree, s->line, s->err, "END_GROUP = %.*s, but the group is %.60s",
                           (int)(name.n < 60 ? name.n : 60), name.text, s->at->name);
    s->depth--;
    s->at = s->at->parent;
    s->closed = s->depth == 0;
    return 0;
}

static int add_key(struct state *s, struct part key, struct part value)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%.*s", (int)key.n, key.text);
    if (s->at->n >= KEYS_MAX)
        return pb_meta_bad(s->tree, s->line, s->err, "a group has more than %d keys", KEYS_MAX);
    if (pb_meta_child(s->at, name) != NULL)
        return pb_meta_bad(s->tree, s->line, s->err, "%s occurs twice in its group", name);
    return pb_meta_add(s->tree, s->at, name, key.n, value.text, value.n, s->err) ? 0 : -1;
}

static int take_pair(struct state *s, struct part key, struct part value)
{
    if (!is_key(key))
        return pb_meta_bad(s->tree, s->line, s->err, "'%.*s' is no key",
                           (int)(key.n < 60 ? key.n : 60), key.text);
    value = unquoted(value);
    if (is(key, "GROUP") || is(key, "BEGIN_GROUP"))
        return is_key(value) ? begin_group(s, value)
                             : pb_meta_bad(s->tree, s->line, s->err, "a group without a name");
    if (is(key, "END_GROUP"))
        return end_group(s, value);
    return add_key(s, key, value);
}

/* Returns true if the text has an open parenthesis. */
static bool is_open(struct part value)
{
    int open = 0;
    for (size_t i = 0; value.n > 0 && value.text[0] == '(' && i < value.n; i++)
        open += (value.text[i] == '(') - (value.text[i] == ')');
    return open > 0;
}

static int take_line(struct state *s, const char *text, size_t n)
{
    struct part line = trimmed(text, n);
    if (line.n == 0)
        return 0;
    s->closed = false;
    if (is(line, "END") || is(line, "END;")) {
        s->ended = true;
        return 0;
    }
    const char *equals = memchr(line.text, '=', line.n);
    if (equals == NULL)
        return pb_meta_bad(s->tree, s->line, s->err, "a line without '='");
    return take_pair(s, trimmed(line.text, (size_t)(equals - line.text)),
                     trimmed(equals + 1, line.n - (size_t)(equals + 1 - line.text)));
}

/* Length of the line at text, with the lines of a list that it begins. */
static size_t line_length(const char *text, size_t bytes, int *lines)
{
    size_t n = 0;
    *lines = 0;
    for (;;) {
        const char *end = memchr(text + n, '\n', bytes - n);
        n = end != NULL ? (size_t)(end - text) : bytes;
        const char *equals = memchr(text, '=', n);
        ++*lines;
        if (equals == NULL || end == NULL || n > LINE_MAX_BYTES)
            return n;
        size_t from = (size_t)(equals + 1 - text);
        struct part value = trimmed(equals + 1, n - from);
        if (!is_open(value))
            return n;
        n++; /* skips the end of the line */
    }
}

int pb_meta_parse_odl(struct pb_meta_tree *tree, const char *text, size_t bytes, struct pb_err *err)
{
    struct state s = {.tree = tree, .at = tree->root, .line = 1, .err = err};
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < bytes && !s.ended;) {
        int lines;
        size_t n = line_length(text + at, bytes - at, &lines);
        rc = n > LINE_MAX_BYTES
                 ? pb_meta_bad(tree, s.line, err, "a value of more than %d bytes", LINE_MAX_BYTES)
                 : take_line(&s, text + at, n);
        s.line += lines;
        at += n + 1;
    }
    if (rc == 0 && s.depth > 0)
        rc = pb_meta_bad(tree, s.line, err, "it ends inside of the group %.60s: it is not complete",
                         s.at->name);
    if (rc == 0 && !s.ended && !s.closed)
        rc = pb_meta_bad(tree, s.line, err, "there is no END: it is not complete");
    return rc;
}
