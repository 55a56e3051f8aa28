/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* XML by libxml2's pull reader: nothing is fetched, no DTD is read, no entity is expanded. A
 * document with a DOCTYPE is refused before libxml2 reads it; no product has one. Depth, number
 * of nodes and of attributes are bounded here, sizes by libxml2 (XML_PARSE_HUGE is not set) and
 * by the caller. */
#include "pipeline/metadata/meta_tree.h"

#include "config/base/arena.h"

#include <libxml/xmlreader.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Limits of one element. Products have some 20 attributes at most. */
enum { ATTRIBUTES_MAX = 500, SPACES_MAX = 32 };

struct state {
    struct pb_meta_tree *tree;
    struct pb_meta_node *at; /* the open element */
    int depth;
    struct pb_err *err;
    char said[160]; /* libxml2's first error message */
    int said_line;
};

static void complain(void *to, xmlErrorPtr error)
{
    struct state *s = to;
    if (s->said[0] != '\0' || error == NULL || error->message == NULL)
        return;
    (void)snprintf(s->said, sizeof s->said, "%s", error->message);
    s->said[strcspn(s->said, "\r\n")] = '\0';
    s->said_line = error->line;
}

static int take_attributes(struct state *s, xmlTextReaderPtr reader, struct pb_meta_node *node)
{
    while (xmlTextReaderMoveToNextAttribute(reader) == 1) {
        const char *name = (const char *)xmlTextReaderConstLocalName(reader);
        const char *value = (const char *)xmlTextReaderConstValue(reader);
        char text[80];
        (void)snprintf(text, sizeof text, "@%s", name ? name : "");
        if (pb_meta_add(s->tree, node, text, strlen(text), value, value ? strlen(value) : 0,
                        s->err) == NULL)
            return -1;
    }
    (void)xmlTextReaderMoveToElement(reader);
    return 0;
}

static int begin(struct state *s, xmlTextReaderPtr reader)
{
    const char *name = (const char *)xmlTextReaderConstLocalName(reader);
    bool is_empty = xmlTextReaderIsEmptyElement(reader) == 1;
    int line = xmlTextReaderGetParserLineNumber(reader);
    if (++s->depth > PB_META_DEPTH_MAX)
        return pb_meta_bad(s->tree, line, s->err, "elements are nested more than %d deep",
                           PB_META_DEPTH_MAX);
    struct pb_meta_node *node =
        pb_meta_add(s->tree, s->at, name ? name : "", name ? strlen(name) : 0, NULL, 0, s->err);
    if (node == NULL || take_attributes(s, reader, node) < 0)
        return -1;
    if (is_empty)
        s->depth--;
    else
        s->at = node;
    return 0;
}

/* Copies the first text of an element that is more than white space, without surrounding white
 * space. */
static int take_text(struct state *s, xmlTextReaderPtr reader)
{
    const char *text = (const char *)xmlTextReaderConstValue(reader);
    if (text == NULL || s->at->text[0] != '\0')
        return 0;
    text += strspn(text, " \t\r\n");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
        n--;
    if (n == 0)
        return 0;
    s->at->text = pb_arena_text(s->tree->arena, text, n);
    if (s->at->text != NULL)
        return 0;
    s->at->text = "";
    return pb_fail(s->err, PB_E_MEMORY, "no memory for the scene's metadata");
}

static int take_node(struct state *s, xmlTextReaderPtr reader)
{
    switch (xmlTextReaderNodeType(reader)) {
    case XML_READER_TYPE_ELEMENT:
        return begin(s, reader);
    case XML_READER_TYPE_END_ELEMENT:
        s->at = s->at->parent;
        s->depth--;
        return 0;
    case XML_READER_TYPE_TEXT:
    case XML_READER_TYPE_CDATA:
        return take_text(s, reader);
    case XML_READER_TYPE_DOCUMENT_TYPE:
    case XML_READER_TYPE_ENTITY_REFERENCE:
        return pb_meta_bad(s->tree, xmlTextReaderGetParserLineNumber(reader), s->err,
                           "entities and document types are not allowed");
    default:
        return 0;
    }
}

/* Returns true for encodings that libxml2 converts itself; for others it would load modules of
 * the C library. */
static bool is_known_encoding(const char *text, size_t bytes)
{
    static const char *const known[] = {"utf-8", "us-ascii", "ascii", "iso-8859-1"};
    char head[201];
    size_t n = bytes < sizeof head - 1 ? bytes : sizeof head - 1;
    memcpy(head, text, n);
    head[n] = '\0';
    const char *end = strstr(head, "?>"), *at = strstr(head, "encoding");
    if (strncmp(head, "<?xml", 5) != 0 || at == NULL || end == NULL || at > end)
        return true;
    at += strcspn(at, "\"'");
    size_t length = *at != '\0' ? strcspn(at + 1, "\"'") : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == length && strncasecmp(known[i], at + 1, length) == 0)
            return true;
    return false;
}

/* Returns the end of a comment, a CDATA section or an instruction that begins at `at`, which
 * libxml2 skips too; `at` if nothing of that kind begins there. */
static size_t skip_plain(const char *text, size_t bytes, size_t at)
{
    static const struct {
        const char *begin, *end;
    } plain[] = {{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        const size_t begin = strlen(plain[i].begin), end = strlen(plain[i].end);
        if (bytes - at < begin || memcmp(text + at, plain[i].begin, begin) != 0)
            continue;
        const char *found = memmem(text + at + begin, bytes - at - begin, plain[i].end, end);
        return found != NULL ? (size_t)(found - text) + end : bytes;
    }
    return at;
}

/* Counts the attributes of the tag that begins at `at`, and the declarations of namespaces among
 * them. Returns its end. */
static size_t count_attributes(const char *text, size_t bytes, size_t at, size_t *out_n,
                               size_t *out_spaces)
{
    *out_n = *out_spaces = 0;
    for (char quote = '\0'; at < bytes && (quote != '\0' || text[at] != '>'); at++) {
        if (quote != '\0')
            quote = text[at] == quote ? '\0' : quote;
        else if (text[at] == '"' || text[at] == '\'')
            quote = text[at];
        else if (text[at] == '=')
            ++*out_n;
        else if (bytes - at > 5 && memcmp(text + at, "xmlns", 5) == 0)
            ++*out_spaces;
    }
    return at;
}

/* Bounds attributes because libxml2 compares each one with all before it, and searches a
 * namespace in all that are declared around an element. */
static int check_attributes(const struct pb_meta_tree *tree, const char *text, size_t bytes,
                            struct pb_err *err)
{
    size_t n, spaces;
    int line = 1;
    for (size_t at = 0; at < bytes;) {
        const char *tag = memchr(text + at, '<', bytes - at);
        if (tag == NULL)
            return 0;
        at = (size_t)(tag - text);
        const size_t behind = skip_plain(text, bytes, at);
        if (behind > at) {
            at = behind;
            continue;
        }
        const size_t end = count_attributes(text, bytes, at, &n, &spaces);
        if (n > ATTRIBUTES_MAX || spaces > SPACES_MAX) {
            for (size_t i = 0; i < at; i++)
                line += text[i] == '\n';
            return pb_meta_bad(tree, line, err, "an element has more than %d %s",
                               spaces > SPACES_MAX ? SPACES_MAX : ATTRIBUTES_MAX,
                               spaces > SPACES_MAX ? "namespaces" : "attributes");
        }
        at = end;
    }
    return 0;
}

int pb_meta_parse_xml(struct pb_meta_tree *tree, const char *text, size_t bytes, struct pb_err *err)
{
    struct state s = {.tree = tree, .at = tree->root, .err = err};
    int rc = 0, more = 0;
    if (memmem(text, bytes, "<!DOCTYPE", 9) != NULL || memmem(text, bytes, "<!ENTITY", 8) != NULL)
        return pb_meta_bad(tree, 0, err, "entities and document types are not allowed");
    if (!is_known_encoding(text, bytes))
        return pb_meta_bad(tree, 1, err, "its encoding is neither UTF-8 nor ISO-8859-1");
    rc = check_attributes(tree, text, bytes, err);
    if (rc < 0)
        return rc;
    xmlTextReaderPtr reader = xmlReaderForMemory(text, (int)bytes, NULL, NULL, XML_PARSE_NONET);
    if (reader == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to read %s", tree->name);
    xmlTextReaderSetStructuredErrorHandler(reader, complain, &s);
    while (rc == 0 && (more = xmlTextReaderRead(reader)) == 1)
        rc = take_node(&s, reader);
    if (rc == 0 && (more < 0 || s.said[0] != '\0'))
        rc = pb_meta_bad(tree, s.said_line, err, "it is no well-formed XML: %s",
                         s.said[0] != '\0' ? s.said : "it ends too early");
    xmlFreeTextReader(reader);
    return rc < 0 ? pb_code_errno(err != NULL && err->code != PB_OK ? err->code
                                                                    : PB_E_INPUT_METADATA_INVALID)
                  : 0;
}
