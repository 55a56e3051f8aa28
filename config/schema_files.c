/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The reader of input.files: a map of bands to patterns, or to maps with the keys of
 * pb_section_file. */
#include "config/schema_values.h"

#include "config/base/arena.h"
#include "config/base/glob.h"
#include "config/input_config.h"
#include "config/yaml/yaml_tree.h"

#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)

void pb_check_file_pattern(struct pb_load *load, const struct pb_yaml *node, const char *what,
                           const char *match)
{
    const char *wrong = NULL;
    if (match[0] == '/')
        wrong = "is an absolute path";
    for (const char *part = match; wrong == NULL && part != NULL;) {
        const char *slash = strchr(part, '/');
        size_t n = slash != NULL ? (size_t)(slash - part) : strlen(part);
        if (n == 2 && strncmp(part, "..", 2) == 0)
            wrong = "leaves the scene's folder";
        part = slash != NULL ? slash + 1 : NULL;
    }
    if (match[0] == '\0')
        wrong = "is empty";
    wrong = wrong != NULL ? wrong : pb_glob_wrong(match);
    if (wrong != NULL)
        WRONG(load, node,
              "%s: '%.80s' %s; files of a scene are named by patterns inside its folder, such as "
              "B04.tif or GRANULE/*/IMG_DATA/R10m/*_B04_10m.jp2",
              what, match, wrong);
}

static bool read_file(struct pb_load *load, const struct pb_yaml *key, const struct pb_yaml *body,
                      const char *what, struct pb_file_config *out)
{
    char found[80], name[160];
    size_t before = pb_report_count(&load->report);
    (void)snprintf(name, sizeof name, "%s.%.63s", what, key->text);
    if (!pb_is_identifier(key->text)) {
        WRONG(load, key, "%s: '%.80s' cannot be a band's name; use letters, digits and '_'", what,
              key->text);
        return false;
    }
    if (body->kind == PB_YAML_LIST) {
        WRONG(load, body, "%s must be a pattern, or a map with match, not %s", name,
              pb_yaml_what(body, found, sizeof found));
        return false;
    }
    out->band = pb_arena_text(load->arena, key->text, strlen(key->text));
    pb_schema_read(load, &pb_section_file, body->kind == PB_YAML_MAP ? body : NULL, out);
    if (body->kind == PB_YAML_MAP)
        pb_schema_need(load, &pb_section_file, key, body);
    else if (pb_need_scalar(load, body, name, "a pattern of file names"))
        out->match = pb_arena_text(load->arena, body->text, strlen(body->text));
    if (out->match != NULL)
        pb_check_file_pattern(load, body, name, out->match);
    if (out->has_scale && out->scale == 0)
        WRONG(load, body, "%s.scale: 0 would make every pixel the same; use 1 for none", name);
    return out->band != NULL && out->match != NULL && pb_report_count(&load->report) == before;
}

void pb_read_files(struct pb_load *load, const struct pb_yaml *node, const char *what,
                   struct pb_file_config **out_files, size_t *out_n)
{
    char found[80];
    if (node->kind != PB_YAML_MAP || node->n == 0) {
        WRONG(load, node, "%s must be a map of bands to files, not %s", what,
              node->kind == PB_YAML_MAP ? "an empty one" : pb_yaml_what(node, found, sizeof found));
        return;
    }
    if (node->n > PB_BANDS_MAX) {
        WRONG(load, node, "%s names %zu bands; at most %d are allowed", what, node->n,
              PB_BANDS_MAX);
        return;
    }
    struct pb_file_config *files = pb_arena_alloc(load->arena, node->n, sizeof *files);
    size_t n = 0;
    for (size_t i = 0; files && i < node->n; i++)
        n += read_file(load, node->keys[i], node->items[i], what, &files[n]);
    *out_files = files;
    *out_n = n;
}
