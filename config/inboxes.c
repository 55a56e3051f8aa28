/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The reader of service.inboxes: a list of maps with the keys of pb_section_inbox. */
#include "config/config_parts.h"
#include "config/schema_values.h"
#include "config/service_config.h"

#include "config/base/arena.h"
#include "config/yaml/yaml_tree.h"

#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)
#define AT(member) offsetof(struct pb_inbox_config, member)

static const struct pb_key complete_keys[] = {
    {.name = "marker",
     .type = PB_KEY_TEXT,
     .offset = AT(complete.marker) - AT(complete),
     .example = "\"{name}.done\"",
     .doc = "Name of the marker file for a complete input called {name}: the input is taken when "
            "its marker exists, and never without."},
    {.name = "checksum",
     .type = PB_KEY_TEXT,
     .offset = AT(complete.checksum) - AT(complete),
     .example = "\"{name}.md5\"",
     .doc = "Name of a file with the checksum of the input called {name} (MD5, SHA-256 or SHA-512, "
            "as md5sum or BSD's md5 writes it): the input is taken when both have settled, never "
            "without, and fails when its bytes are others."},
};

const struct pb_section pb_section_inbox_complete = {
    "complete", "File next to a complete input; one of the two.", complete_keys,
    sizeof complete_keys / sizeof *complete_keys};

static const struct pb_key keys[] = {
    {.name = "path",
     .type = PB_KEY_PATH,
     .offset = AT(path),
     .required = true,
     .sample = "/srv/feed/kiruna",
     .doc = "The directory. It must be on the file system of work."},
    {.name = "recurse",
     .type = PB_KEY_CHOICE,
     .offset = AT(recurse),
     .choices = "false|true",
     .def = "false",
     .doc = "Whether files and scenes in its sub-folders are taken as well; archive and quarantine "
            "get the same sub-folders."},
    {.name = "priority",
     .type = PB_KEY_INT,
     .offset = AT(priority),
     .min = -100,
     .max = 100,
     .def = "0",
     .doc = "Of its jobs: those of the highest start first, whatever their pipelines' priorities."},
    {.name = "complete",
     .type = PB_KEY_SECTION,
     .offset = AT(complete),
     .more = AT(has_complete),
     .section = &pb_section_inbox_complete,
     .example = "{marker: \"{name}.done\"}",
     .doc = "A file next to each input that marks it as complete. Without this key: settle."},
    {.name = "node",
     .type = PB_KEY_TEXT,
     .offset = AT(node),
     .example = "hot-1",
     .doc = "Name of the node that watches it (service.store). This node watches it while that one "
            "does not report. Without this key: this node."},
};

const struct pb_section pb_section_inbox = {"inboxes", "A watched directory.", keys,
                                            sizeof keys / sizeof *keys};

/* A name with {name} in it, once, and more. */
static void check_pattern(struct pb_load *load, const struct pb_yaml *node, const char *key,
                          const char *pattern)
{
    const char *at = pattern ? strstr(pattern, "{name}") : NULL;
    if (pattern == NULL)
        return;
    if (at == NULL || strstr(at + 1, "{name}") != NULL || strcmp(pattern, "{name}") == 0 ||
        strchr(pattern, '/') != NULL || strlen(pattern) >= 128)
        WRONG(load, node,
              "complete.%s: '%.80s' names no other file; write a name with {name} in it, such as "
              "\"{name}.done\"",
              key, pattern);
}

static void check_complete(struct pb_load *load, const struct pb_yaml *node,
                           const struct pb_inbox_config *inbox)
{
    const struct pb_yaml *complete = pb_yaml_find(node, "complete", NULL);
    if (complete == NULL)
        return;
    check_pattern(load, complete, "marker", inbox->complete.marker);
    check_pattern(load, complete, "checksum", inbox->complete.checksum);
    if ((inbox->complete.marker == NULL) == (inbox->complete.checksum == NULL))
        WRONG(load, complete, "complete: write marker or checksum, one of them");
}

static void check_node(struct pb_load *load, const struct pb_yaml *node,
                       const struct pb_inbox_config *inbox)
{
    const struct pb_yaml *name = pb_yaml_find(node, "node", NULL);
    if (name != NULL && inbox->node != NULL && !pb_is_file_word(inbox->node))
        WRONG(load, name, "node: '%.80s' is no name of a node; write that of its service.node",
              inbox->node);
}

static bool read_inbox(struct pb_load *load, const struct pb_yaml *node, const char *what,
                       struct pb_inbox_config *out)
{
    char found[80];
    size_t before = pb_report_count(&load->report);
    if (node->kind != PB_YAML_MAP) {
        WRONG(load, node, "an entry of %s must be a map such as {path: /srv/feed}, not %s", what,
              pb_yaml_what(node, found, sizeof found));
        return false;
    }
    pb_schema_read(load, &pb_section_inbox, node, out);
    pb_schema_need(load, &pb_section_inbox, node, node);
    if (pb_report_count(&load->report) == before)
        check_complete(load, node, out);
    if (pb_report_count(&load->report) == before)
        check_node(load, node, out);
    const struct pb_yaml *path = pb_yaml_find(node, "path", NULL);
    out->line = path ? path->line : node->line;
    out->col = path ? path->col : node->col;
    return out->path != NULL && pb_report_count(&load->report) == before;
}

void pb_read_inboxes(struct pb_load *load, const struct pb_yaml *node, const char *what,
                     struct pb_inbox_config **out_inboxes, size_t *out_n)
{
    char found[80];
    if (node->kind != PB_YAML_LIST || node->n == 0) {
        WRONG(load, node, "%s must be a list such as [{path: /srv/feed}], not %s", what,
              node->kind == PB_YAML_LIST ? "an empty one"
                                         : pb_yaml_what(node, found, sizeof found));
        return;
    }
    if (node->n > PB_INBOXES_MAX) {
        WRONG(load, node, "%s has %zu entries; at most %d are allowed", what, node->n,
              PB_INBOXES_MAX);
        return;
    }
    struct pb_inbox_config *inboxes = pb_arena_alloc(load->arena, node->n, sizeof *inboxes);
    size_t n = 0;
    for (size_t i = 0; inboxes && i < node->n; i++)
        n += read_inbox(load, node->items[i], what, &inboxes[n]);
    *out_inboxes = inboxes;
    *out_n = n;
}

void pb_list_inboxes(struct pb_load *load, const struct pb_yaml *section,
                     struct pb_service_config *service)
{
    const struct pb_yaml *one = pb_yaml_find(section, "inbox", NULL);
    const struct pb_yaml *several = pb_yaml_find(section, "inboxes", NULL);
    if (one != NULL && several != NULL)
        WRONG(load, several,
              "service.inboxes: service.inbox is given as well; put it into the "
              "list");
    if (several != NULL) {
        service->inbox = NULL;
        service->inboxes = service->own_inboxes;
        service->n_inboxes = service->n_own_inboxes;
        return;
    }
    struct pb_inbox_config *inbox = pb_arena_alloc(load->arena, 1, sizeof *inbox);
    if (inbox == NULL)
        return;
    pb_schema_read(load, &pb_section_inbox, NULL, inbox); /* the defaults */
    const struct pb_yaml *at = one ? one : section;
    inbox->path = service->inbox;
    inbox->line = at ? at->line : 0;
    inbox->col = at ? at->col : 0;
    service->inboxes = inbox;
    service->n_inboxes = inbox->path != NULL;
}
