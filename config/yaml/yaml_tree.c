/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Built from libyaml's events rather than its documents, so that every limit holds before memory is
 * spent. The recursion is bounded by the depth limit. Children are gathered in a linked list and
 * laid out as arrays when their parent ends (yaml_map.h). */
#include "config/yaml/yaml_tree.h"

#include "config/base/arena.h"
#include "config/yaml/report.h"
#include "config/yaml/yaml_map.h"
#include "config/yaml/yaml_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct anchor {
    struct anchor *next;
    const char *name;
    const struct pb_yaml *node; /* NULL while the node is being read */
};

struct reader {
    yaml_parser_t parser;
    struct pb_arena *arena;
    struct pb_report *report;
    const char *text;
    size_t bytes;
    struct anchor *anchors;
    unsigned n_anchors;
    unsigned nodes; /* expanded, so far */
    int first;      /* line 0 of the file, in the lines of nodes and mistakes */
    /* Start of a line of the text: the position of place_text, as scalars come in order. */
    const char *line_start;
    int line;
};

static int line_of(const struct reader *r, const yaml_mark_t *mark)
{
    return r->first + (int)mark->line + 1;
}

static int col_of(const yaml_mark_t *mark)
{
    return (int)mark->column + 1;
}

/* The byte at a place of the text, '\0' past its end. */
static char byte_at(const struct reader *r, const yaml_mark_t *mark)
{
    size_t line = 0, col = 0;
    for (size_t i = 0; i < r->bytes; i++) {
        bool first = ((unsigned char)r->text[i] & 0xC0) != 0x80;
        if (line == mark->line && col == mark->column && first)
            return r->text[i];
        col = r->text[i] == '\n' ? 0 : col + first;
        line += r->text[i] == '\n';
    }
    return '\0';
}

static int syntax_error(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return -ENOMEM;
    if (p->error == YAML_READER_ERROR) {
        int line = r->first + 1, col = 1;
        for (size_t i = 0; i < p->problem_offset && i < r->bytes; i++) {
            unsigned char c = (unsigned char)r->text[i];
            line += c == '\n';
            col = c == '\n' ? 1 : col + ((c & 0xC0) != 0x80);
        }
        return pb_report(r->report, PB_E_CONFIG_SYNTAX, line, col, "%s",
                         pb_yaml_problem(p->problem, NULL));
    }
    const yaml_mark_t *mark = &p->problem_mark;
    if (p->context && p->problem && pb_yaml_blames_context(p->problem, p->context))
        mark = &p->context_mark;
    if (byte_at(r, mark) == '\t')
        return pb_report(r->report, PB_E_CONFIG_SYNTAX, line_of(r, mark), col_of(mark),
                         "a tab cannot indent; use spaces instead");
    return pb_report(r->report, PB_E_CONFIG_SYNTAX, line_of(r, mark), col_of(mark), "%s",
                     pb_yaml_problem(p->problem, p->context));
}

static int next_event(struct reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) ? 0 : syntax_error(r);
}

static int count_nodes(struct reader *r, unsigned more, const yaml_mark_t *mark)
{
    if (more > PB_YAML_NODES_MAX - r->nodes)
        return pb_report(r->report, PB_E_CONFIG_LIMIT, line_of(r, mark), col_of(mark),
                         "the file holds more than %d values here, aliases expanded; "
                         "a configuration needs far fewer",
                         PB_YAML_NODES_MAX);
    r->nodes += more;
    return 0;
}

static int too_deep(struct reader *r, const yaml_mark_t *mark)
{
    return pb_report(r->report, PB_E_CONFIG_LIMIT, line_of(r, mark), col_of(mark),
                     "nested deeper than %d levels; a configuration needs fewer than 10",
                     PB_CONFIG_DEPTH_MAX);
}

/* Remembers an anchor before its node is read, so that an alias inside it is seen as a cycle. */
static int open_anchor(struct reader *r, const yaml_mark_t *mark, const yaml_char_t *name,
                       struct anchor **out_anchor)
{
    *out_anchor = NULL;
    if (name == NULL)
        return 0;
    if (r->n_anchors++ == PB_YAML_ANCHORS_MAX)
        return pb_report(r->report, PB_E_CONFIG_LIMIT, line_of(r, mark), col_of(mark),
                         "more than %d anchors (&name); a configuration needs far fewer",
                         PB_YAML_ANCHORS_MAX);
    struct anchor *anchor = pb_arena_alloc(r->arena, 1, sizeof *anchor);
    if (anchor == NULL)
        return -ENOMEM;
    anchor->name = pb_arena_text(r->arena, (const char *)name, strlen((const char *)name));
    if (anchor->name == NULL)
        return -ENOMEM;
    anchor->next = r->anchors;
    r->anchors = anchor;
    *out_anchor = anchor;
    return 0;
}

static int read_alias(struct reader *r, const yaml_event_t *event, unsigned depth,
                      const struct pb_yaml **out_node)
{
    const yaml_mark_t *mark = &event->start_mark;
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = r->anchors;
    while (anchor && strcmp(anchor->name, name) != 0)
        anchor = anchor->next;
    if (anchor == NULL)
        return pb_report(r->report, PB_E_CONFIG_SYNTAX, line_of(r, mark), col_of(mark),
                         "there is no anchor '&%.60s' above for '*%.60s'; a pattern that starts "
                         "with * must be in quotes",
                         name, name);
    if (anchor->node == NULL)
        return pb_report(r->report, PB_E_CONFIG_SYNTAX, line_of(r, mark), col_of(mark),
                         "'*%.60s' is inside '&%.60s' itself; that would never end", name, name);
    if (depth + anchor->node->height > PB_CONFIG_DEPTH_MAX)
        return too_deep(r, mark);
    *out_node = anchor->node;
    return count_nodes(r, anchor->node->nodes, mark);
}

static int check_tag(struct reader *r, const yaml_event_t *event, const yaml_char_t *tag)
{
    static const char *const known[] = {YAML_NULL_TAG,  YAML_BOOL_TAG, YAML_STR_TAG, YAML_INT_TAG,
                                        YAML_FLOAT_TAG, YAML_SEQ_TAG,  YAML_MAP_TAG, "!"};
    if (tag == NULL)
        return 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp((const char *)tag, known[i]) == 0)
            return 0;
    return pb_report(r->report, PB_E_CONFIG_SYNTAX, line_of(r, &event->start_mark),
                     col_of(&event->start_mark),
                     "the tag '%.60s' is not known; leave it out, or put a text that starts with "
                     "! in quotes",
                     (const char *)tag);
}

/* The place of the first character of a scalar. */
static void place_text(struct reader *r, const yaml_event_t *event, struct pb_yaml *node)
{
    node->text_line = node->line;
    node->text_col = node->col;
    yaml_scalar_style_t style = event->data.scalar.style;
    if (style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE)
        node->text_col++;
    if (style != YAML_LITERAL_SCALAR_STYLE && style != YAML_FOLDED_SCALAR_STYLE)
        return;
    const char *p = r->line_start, *end = r->text + r->bytes;
    for (; p < end && r->line <= node->line; p++)
        r->line += *p == '\n';
    r->line_start = p;
    for (int line = r->line; p < end; line++) {
        const char *start = p;
        while (p < end && *p == ' ')
            p++;
        if (p < end && *p != '\n' && *p != '\r') {
            node->text_line = line;
            node->text_col = (int)(p - start) + 1;
            return;
        }
        while (p < end && *p++ != '\n') {
        }
    }
}

static int read_scalar(struct reader *r, const yaml_event_t *event, struct pb_yaml *node)
{
    const char *text = (const char *)event->data.scalar.value;
    const char *tag = (const char *)event->data.scalar.tag;
    size_t length = event->data.scalar.length;
    node->damaged = !pb_yaml_printable(text, length);
    if (node->damaged)
        pb_report(r->report, PB_E_CONFIG_SYNTAX, node->line, node->col,
                  "this text holds a character that cannot be printed; remove it");
    node->kind = PB_YAML_SCALAR;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                  !(tag && (strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, "!") == 0));
    node->text = pb_arena_text(r->arena, text, length);
    place_text(r, event, node);
    return node->text ? 0 : -ENOMEM;
}

static int read_node(struct reader *r, yaml_event_t *event, unsigned depth,
                     const struct pb_yaml **out_node);

/* Reads the children up to the end of a list or map; event is reused for them. */
static int read_children(struct reader *r, yaml_event_t *event, unsigned depth,
                         struct pb_yaml *node)
{
    struct pb_yaml_child *first = NULL, **last = &first;
    const struct pb_yaml *key = NULL;
    bool expect_key = node->kind == PB_YAML_MAP;
    for (;;) {
        const struct pb_yaml *item = NULL;
        int rc = next_event(r, event);
        if (rc)
            return rc;
        if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(event);
            return pb_yaml_lay_out(r->arena, r->report, node, first);
        }
        rc = read_node(r, event, depth, &item);
        if (rc)
            return rc;
        if (expect_key) {
            key = item;
            expect_key = false;
            continue;
        }
        expect_key = node->kind == PB_YAML_MAP;
        if (expect_key && !pb_yaml_key_is_good(r->report, key)) {
            node->damaged = true;
            continue;
        }
        struct pb_yaml_child *child = pb_arena_alloc(r->arena, 1, sizeof *child);
        if (child == NULL)
            return -ENOMEM;
        child->key = key;
        child->item = item;
        *last = child;
        last = &child->next;
        node->n++;
    }
}

static int fill_node(struct reader *r, yaml_event_t *event, unsigned depth, struct pb_yaml *node)
{
    int rc = 0;
    struct anchor *anchor = NULL;
    const yaml_char_t *name = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        name = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        node->kind = PB_YAML_LIST;
        name = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else {
        node->kind = PB_YAML_MAP;
        name = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    rc = check_tag(r, event, tag);
    if (rc == 0)
        rc = open_anchor(r, &event->start_mark, name, &anchor);
    if (rc == 0)
        rc = count_nodes(r, 1, &event->start_mark);
    if (rc == 0 && event->type != YAML_SCALAR_EVENT && depth >= PB_CONFIG_DEPTH_MAX)
        rc = too_deep(r, &event->start_mark);
    if (rc == 0 && event->type == YAML_SCALAR_EVENT)
        rc = read_scalar(r, event, node);
    bool scalar = event->type == YAML_SCALAR_EVENT;
    yaml_event_delete(event);
    if (rc == 0 && !scalar)
        rc = read_children(r, event, depth + 1, node);
    if (anchor)
        anchor->node = node;
    return rc;
}

/* Takes the event (deletes it). */
static int read_node(struct reader *r, yaml_event_t *event, unsigned depth,
                     const struct pb_yaml **out_node)
{
    if (event->type == YAML_ALIAS_EVENT) {
        int rc = read_alias(r, event, depth, out_node);
        yaml_event_delete(event);
        return rc;
    }
    struct pb_yaml *node = pb_arena_alloc(r->arena, 1, sizeof *node);
    if (node == NULL) {
        yaml_event_delete(event);
        return -ENOMEM;
    }
    node->line = line_of(r, &event->start_mark);
    node->col = col_of(&event->start_mark);
    node->nodes = 1;
    *out_node = node;
    return fill_node(r, event, depth, node);
}

static int read_document(struct reader *r, const struct pb_yaml **out_root)
{
    yaml_event_t event;
    bool seen = false;
    for (;;) {
        int rc = next_event(r, &event);
        if (rc)
            return rc;
        switch (event.type) {
        case YAML_DOCUMENT_START_EVENT:
            if (seen)
                rc = pb_report(r->report, PB_E_CONFIG_SYNTAX, line_of(r, &event.start_mark),
                               col_of(&event.start_mark),
                               "a second document starts here; one file holds one configuration");
            seen = true;
            break;
        case YAML_STREAM_END_EVENT:
            yaml_event_delete(&event);
            return 0;
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
            break;
        default:
            rc = read_node(r, &event, 0, out_root);
            if (rc)
                return rc;
            continue;
        }
        yaml_event_delete(&event);
        if (rc)
            return rc;
    }
}

int pb_yaml_parse_file(const char *text, size_t bytes, int number, struct pb_arena *arena,
                       struct pb_report *report, const struct pb_yaml **out_root)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* of byte order, as some editors write it */
    if (bytes > PB_CONFIG_BYTES_MAX)
        return pb_report(report, PB_E_CONFIG_LIMIT, number * PB_FILE_LINES, 0,
                         "the file has %zu bytes; at most %d (1 MiB) are read", bytes,
                         PB_CONFIG_BYTES_MAX);
    if (bytes >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        bytes -= 3;
    }
    struct reader r = {.arena = arena,
                       .report = report,
                       .text = text,
                       .bytes = bytes,
                       .first = number * PB_FILE_LINES,
                       .line_start = text,
                       .line = number * PB_FILE_LINES + 1};
    if (!yaml_parser_initialize(&r.parser))
        return -ENOMEM;
    /* Places and messages are made for UTF-8; libyaml would take UTF-16, too. */
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, bytes);
    const struct pb_yaml *root = NULL;
    int rc = read_document(&r, &root);
    yaml_parser_delete(&r.parser);
    if (rc == 0)
        *out_root = root;
    return rc;
}

int pb_yaml_parse(const char *text, size_t bytes, struct pb_arena *arena, struct pb_report *report,
                  const struct pb_yaml **out_root)
{
    return pb_yaml_parse_file(text, bytes, 0, arena, report, out_root);
}
