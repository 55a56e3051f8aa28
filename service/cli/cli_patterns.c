/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom patterns`: lists the communication patterns of this installation, or prints all about
 * one. */
#include "service/cli/cli.h"

#include "config/base/json_writer.h"
#include "config/exchange.h"
#include "config/patterns.h"
#include "config/schema_doc.h"
#include "kernels/nearest.h"
#include "kernels/op.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = WIC_PATTERNS_MAX };

/* An entry of the list; pattern NULL: the plugin was refused, with the reason. */
struct entry {
    char name[WIC_PATTERN_NAME_MAX];
    const struct wic_pattern *pattern;
    char why[WIC_TEXT_BYTES];
};

static size_t load_all(struct entry *entries)
{
    char names[NAMES][WIC_PATTERN_NAME_MAX];
    size_t n = pb_pattern_names(names);
    for (size_t i = 0; i < n; i++) {
        entries[i] = (struct entry){.pattern = NULL};
        memcpy(entries[i].name, names[i], sizeof names[i]);
        (void)pb_pattern_find(names[i], &entries[i].pattern, entries[i].why, sizeof entries[i].why);
    }
    return n;
}

static bool is_built_in(const struct entry *entry)
{
    return entry->pattern == &wic_pattern_unidirectional;
}

/* Returns true if steps of the operator choose the pattern; out_of: the exchange that it is for. */
static bool is_chosen(const struct pb_op *op, const struct wic_pattern *pattern,
                      enum pb_op_exchange_of *out_of)
{
    struct pb_op_exchange chosen = {.pattern = NULL};
    void *params = op->exchange != NULL ? calloc(1, op->params_bytes) : NULL;
    if (params != NULL)
        op->exchange(params, &chosen);
    free(params);
    *out_of = chosen.of;
    return chosen.pattern != NULL && strcmp(chosen.pattern, pattern->name) == 0;
}

static void json_operators(struct pb_json *json, const struct wic_pattern *pattern)
{
    enum pb_op_exchange_of of;
    pb_json_array(json, "chosen_by");
    for (size_t i = 0; pattern != NULL && i < pb_op_count(); i++)
        if (is_chosen(pb_op_at(i), pattern, &of)) {
            pb_json_object(json, NULL);
            pb_json_string(json, "operator", pb_op_at(i)->name);
            pb_json_string(json, "of", pb_exchange_of_name(of));
            pb_json_end(json);
        }
    pb_json_end(json);
}

static void print_operators(const struct wic_pattern *pattern)
{
    static const char *const what[] = {"its rounds over the image", "tiles",
                                       "the parts of each tile"};
    enum pb_op_exchange_of of;
    for (size_t i = 0; i < pb_op_count(); i++)
        if (is_chosen(pb_op_at(i), pattern, &of))
            printf("\nThe operator '%s' chooses it for %s.\n", pb_op_at(i)->name, what[of]);
}

static int json_pattern(const struct entry *entry)
{
    struct pb_json *json = pb_json_create(false);
    const struct wic_pattern *pattern = entry->pattern;
    struct pb_exchange_keys room;
    pb_json_object(json, NULL);
    pb_json_string(json, "name", entry->name);
    pb_json_bool(json, "built_in", is_built_in(entry));
    pb_json_string(json, "doc", pattern != NULL ? pattern->doc : NULL);
    pb_json_string(json, "refused", pattern != NULL ? NULL : entry->why);
    pb_json_array(json, "arguments");
    const struct pb_section *keys = pattern != NULL ? pb_exchange_section(pattern, &room) : NULL;
    for (size_t i = 1; keys != NULL && i < keys->n; i++) { /* the first key is `pattern` */
        char range[120];
        pb_json_object(json, NULL);
        pb_json_string(json, "name", keys->keys[i].name);
        pb_json_string(json, "range", pb_key_range(&keys->keys[i], range, sizeof range));
        pb_json_string(json, "default", keys->keys[i].def);
        pb_json_string(json, "doc", keys->keys[i].doc);
        pb_json_end(json);
    }
    pb_json_end(json);
    json_operators(json, pattern);
    pb_json_end(json);
    return cli_finish_json(json);
}

static void print_pattern(const struct entry *entry)
{
    const struct wic_pattern *pattern = entry->pattern;
    struct pb_exchange_keys room;
    printf("%s%s%s: %s\n\n", cli_color(stdout, CLI_BOLD), entry->name, cli_color(stdout, CLI_PLAIN),
           is_built_in(entry) ? "built in" : "a plugin");
    cli_wrap(stdout, 0, 80, pattern->doc);
    const struct pb_section *keys = pb_exchange_section(pattern, &room);
    puts(keys->n > 1 ? "\narguments:" : "\nno arguments");
    for (size_t i = 1; i < keys->n; i++)
        cli_print_key(&keys->keys[i]);
    print_operators(pattern);
    printf("\nExample:\n  exchange: {pattern: %s%s%s%s%s}\n", entry->name, keys->n > 1 ? ", " : "",
           keys->n > 1 ? keys->keys[1].name : "", keys->n > 1 ? ": " : "",
           keys->n > 1 ? keys->keys[1].def : "");
}

static void print_list(const struct entry *entries, size_t n)
{
    char directory[PATH_MAX + 64];
    for (size_t i = 0; i < n; i++) {
        printf("%-14s ", entries[i].name);
        if (entries[i].pattern == NULL)
            printf("%srefused:%s ", cli_color(stdout, CLI_RED), cli_color(stdout, CLI_PLAIN));
        cli_wrap(stdout, 15, 80, entries[i].pattern ? entries[i].pattern->doc : entries[i].why);
    }
    printf("\nD0 is the host, D1 the device that computes. Plugins are in\n%s.\n"
           "'pushbroom patterns NAME' shows the arguments.\n",
           pb_pattern_directory(directory, sizeof directory));
}

static const struct entry *find(const struct entry *entries, size_t n, const char *name)
{
    const char *names[NAMES];
    for (size_t i = 0; i < n; i++) {
        names[i] = entries[i].name;
        if (strcmp(names[i], name) == 0)
            return &entries[i];
    }
    (void)cli_unknown_name("patterns", "pattern", name, pb_nearest(name, names, n));
    return NULL;
}

void cli_patterns_each(void (*visit)(const void *user, const char *name), const void *user)
{
    struct entry entries[NAMES];
    const size_t n = load_all(entries);
    for (size_t i = 0; i < n; i++)
        visit(user, entries[i].name);
}

int cli_patterns(int argc, char **argv)
{
    struct entry entries[NAMES];
    const char *name;
    bool as_json;
    int rc = cli_parse_word("patterns", argc, argv, &as_json, &name);
    if (rc != CLI_DONE)
        return rc;
    size_t n = load_all(entries);
    const struct entry *one = name ? find(entries, n, name) : NULL;
    if (name != NULL && one == NULL)
        return CLI_USAGE;
    for (size_t i = 0; as_json && rc == CLI_DONE && i < n; i++)
        if (one == NULL || one == &entries[i])
            rc = json_pattern(&entries[i]);
    if (as_json)
        return rc;
    if (one != NULL && one->pattern == NULL)
        return cli_usage("patterns", "%s", one->why);
    if (one != NULL)
        print_pattern(one);
    else
        print_list(entries, n);
    return CLI_DONE;
}
