/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The reader of input.sources: a map of names to maps with the keys of pb_section_source. */
#include "config/schema_values.h"

#include "config/base/arena.h"
#include "config/input_config.h"
#include "config/yaml/yaml_tree.h"

#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)

enum { SOURCES_MAX = PB_FILES_MAX - 1 }; /* the scene is one */

static bool read_source(struct pb_load *load, const struct pb_yaml *key, const struct pb_yaml *body,
                        const char *what, struct pb_source_config *out)
{
    char found[80];
    if (!pb_is_identifier(key->text)) {
        WRONG(load, key, "%s: '%.80s' cannot be a source's name; use letters, digits and '_'", what,
              key->text);
        return false;
    }
    if (body->kind != PB_YAML_MAP) {
        WRONG(load, body, "%s.%.63s must be a map with file and bands, not %s", what, key->text,
              pb_yaml_what(body, found, sizeof found));
        return false;
    }
    out->name = pb_arena_text(load->arena, key->text, strlen(key->text));
    size_t before = pb_report_count(&load->report);
    pb_schema_read(load, &pb_section_source, body, out);
    pb_schema_need(load, &pb_section_source, key, body);
    if (out->n_bands == 0 && pb_report_count(&load->report) == before)
        WRONG(load, key, "%s.%.63s names no bands; write bands: {NAME: 1}", what, key->text);
    return out->name != NULL && pb_report_count(&load->report) == before;
}

void pb_read_sources(struct pb_load *load, const struct pb_yaml *node, const char *what,
                     struct pb_source_config **out_sources, size_t *out_n)
{
    char found[80];
    if (node->kind != PB_YAML_MAP || node->n == 0) {
        WRONG(load, node, "%s must be a map of names to files, not %s", what,
              node->kind == PB_YAML_MAP ? "an empty one" : pb_yaml_what(node, found, sizeof found));
        return;
    }
    if (node->n > SOURCES_MAX) {
        WRONG(load, node, "%s names %zu files; at most %d are allowed", what, node->n, SOURCES_MAX);
        return;
    }
    struct pb_source_config *sources = pb_arena_alloc(load->arena, node->n, sizeof *sources);
    size_t n = 0;
    for (size_t i = 0; sources && i < node->n; i++)
        n += read_source(load, node->keys[i], node->items[i], what, &sources[n]);
    *out_sources = sources;
    *out_n = n;
}
