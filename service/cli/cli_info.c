/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Commands that print information: check-config, operators. */
#include "service/cli/cli.h"

#include "config/config.h"
#include "config/yaml/report.h"
#include "kernels/op.h"
#include "pipeline/product/product_kinds.h"
#include "config/base/json_writer.h"
#include "config/schema_doc.h"
#include "config/schema_json.h"
#include "kernels/nearest.h"

#include <stdlib.h>
#include <string.h>

/* Prints the usage error; the nearest option is one that the help of the command lists. */
static int unknown_option(const char *command, const char *word)
{
    enum { OPTIONS = 16, BYTES = 32 };
    char text[OPTIONS][BYTES];
    const char *names[OPTIONS];
    size_t n = 0;
    const struct pb_help_option *option = cli_command_find(command)->page.options;
    for (; option[n].name != NULL && n < OPTIONS; n++) {
        (void)snprintf(text[n], BYTES, "--%s", option[n].name);
        names[n] = text[n];
    }
    return cli_unknown_option(command, word, names, n);
}

int cli_parse_word(const char *command, int argc, char **argv, bool *json, const char **word)
{
    *word = NULL;
    *json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            *json = true;
        else if (argv[i][0] == '-')
            return unknown_option(command, argv[i]);
        else if (*word != NULL)
            return cli_usage(command, "one name at a time, '%s' is too many", argv[i]);
        else
            *word = argv[i];
    }
    return CLI_DONE;
}

int cli_finish_json(struct pb_json *json)
{
    const char *text = pb_json_text(json, NULL);
    puts(text ? text : "null");
    pb_json_destroy(json);
    return text ? CLI_DONE : CLI_JOB_FAILED;
}

/* --- check-config ---------------------------------------------------------------------------- */

static void add_warning(void *user, const char *file, int line, int col, const char *text)
{
    struct pb_json *json = user;
    pb_json_object(json, NULL);
    pb_json_string(json, "file", file);
    pb_json_int(json, "line", line);
    pb_json_int(json, "column", col);
    pb_json_string(json, "message", text);
    pb_json_end(json);
}

static int check_config_json(const char *path, const struct pb_product_kinds *kinds)
{
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    int rc = pb_config_load(path, kinds, &errors, &config);
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_bool(json, "ok", rc == 0);
    pb_json_array(json, "errors");
    for (size_t i = 0; i < errors.n; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "code", pb_code_id(errors.err[i].code));
        pb_json_string(json, "file", errors.err[i].file);
        pb_json_int(json, "line", errors.err[i].line);
        pb_json_int(json, "column", errors.err[i].col);
        pb_json_string(json, "message", errors.err[i].msg);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_array(json, "warnings");
    if (config != NULL)
        pb_config_warnings(config, add_warning, json);
    pb_json_end(json);
    char *text = config ? pb_config_print(config) : NULL;
    pb_json_string(json, "effective", text);
    pb_json_end(json);
    free(text);
    pb_config_destroy(config);
    (void)cli_finish_json(json);
    return rc == 0 ? CLI_DONE : CLI_USAGE;
}

static void print_warning(void *user, const char *file, int line, int col, const char *text)
{
    (void)user;
    (void)fprintf(stderr, "%s:%d:%d: warning: %s\n", file, line, col, text);
}

static int print_schema(void)
{
    struct pb_json *json = pb_json_create(true);
    pb_config_schema(&pb_products, json);
    return cli_finish_json(json);
}

int cli_check_config_as(int argc, char **argv, const struct pb_product_kinds *kinds)
{
    const char *path;
    bool json;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--schema") == 0)
            return argc == 2 ? print_schema()
                             : cli_usage("check-config", "--schema takes no FILE or option");
        if (argv[i][0] == '-' && strcmp(argv[i], "--json") != 0)
            return cli_unknown_option("check-config", argv[i],
                                      (const char *const[]){"--json", "--schema"}, 2);
    }
    int rc = cli_parse_word("check-config", argc, argv, &json, &path);
    if (rc != CLI_DONE)
        return rc;
    if (path == NULL)
        return cli_usage("check-config", "no FILE given");
    if (json)
        return check_config_json(path, kinds);
    struct pb_config *config = cli_load_config_as(path, kinds);
    if (config == NULL)
        return CLI_USAGE;
    char *text = pb_config_print(config);
    if (text != NULL)
        fputs(text, stdout);
    pb_config_warnings(config, print_warning, NULL);
    fprintf(stderr, "%s%s is fine:%s %zu pipeline%s\n", cli_color(stderr, CLI_GREEN), path,
            cli_color(stderr, CLI_PLAIN), config->n_pipelines, config->n_pipelines == 1 ? "" : "s");
    rc = text ? CLI_DONE : CLI_JOB_FAILED;
    free(text);
    pb_config_destroy(config);
    return rc;
}

static bool has_crs;

static bool note_crs(const char *text)
{
    (void)text;
    has_crs = true;
    return true;
}

/* Returns true if a file among the words is a configuration that names a coordinate system. */
static bool names_crs(int argc, char **argv)
{
    struct pb_product_kinds kinds = pb_products;
    kinds.is_crs = note_crs;
    for (int i = 1; i < argc && !has_crs; i++) {
        struct pb_err_list errors;
        struct pb_config *config = NULL;
        if (argv[i][0] != '-')
            (void)pb_config_load(argv[i], &kinds, &errors, &config);
        pb_config_destroy(config);
    }
    return has_crs;
}

int cli_check_config(int argc, char **argv)
{
    return names_crs(argc, argv) ? cli_compute(argv)
                                 : cli_check_config_as(argc, argv, &pb_products);
}

/* --- operators ------------------------------------------------------------------------------- */

void cli_print_key(const struct pb_key *key)
{
    char room[120], form[400] = "", text[600];
    const char *range = pb_key_range(key, room, sizeof room);
    const char *choices = key->choices ? key->choices : pb_key_form(key->type);
    bool is_long = strlen(choices) > 50; /* then lines may break at each choice */
    for (size_t n = 0; *choices != '\0' && n + 4 < sizeof form; choices++)
        n += (size_t)snprintf(form + n, sizeof form - n, is_long && *choices == '|' ? " %c " : "%c",
                              *choices);
    (void)snprintf(text, sizeof text, "%s%s%s%s%s%s", form, key->required ? ", required" : "",
                   range ? ", " : "", range ? range : "", key->def ? ", default " : "",
                   key->def ? key->def : "");
    printf("  %-10s ", key->name);
    cli_wrap(stdout, 13, 80, text);
    printf("             ");
    cli_wrap(stdout, 13, 80, key->doc);
}

/* Wraps paragraphs to the width; indented lines (examples) stay unchanged; ends with an empty
 * line. */
static void print_notes(const char *doc)
{
    char paragraph[2048];
    size_t used = 0;
    for (const char *line = doc; *line != '\0' || used > 0;) {
        size_t bytes = strcspn(line, "\n");
        bool prose = bytes > 0 && line[0] != ' ';
        if (!prose && used > 0) {
            cli_wrap(stdout, 0, 80, paragraph);
            used = 0;
        }
        if (prose && used + bytes + 2 < sizeof paragraph)
            used += (size_t)snprintf(paragraph + used, sizeof paragraph - used, "%.*s ", (int)bytes,
                                     line);
        else if (*line != '\0')
            printf("%.*s\n", (int)bytes, line);
        line += bytes + (line[bytes] == '\n');
    }
    puts("");
}

static int json_operator(size_t at)
{
    const struct pb_op *const op = pb_op_at(at);
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "name", op->name);
    pb_json_string(json, "group", pb_op_group(at));
    pb_json_string(json, "summary", op->doc.summary);
    pb_json_string(json, "formula", op->doc.formula);
    pb_json_string(json, "units", op->doc.units);
    pb_json_string(json, "nodata", op->doc.nodata);
    pb_json_string(json, "source", op->doc.source);
    pb_json_string(json, "notes", op->doc.notes);
    pb_json_array(json, "parameters");
    for (size_t i = 0; i < op->n_keys; i++) {
        const struct pb_key *key = &op->keys[i];
        char range[120];
        pb_json_object(json, NULL);
        pb_json_string(json, "name", key->name);
        pb_json_string(json, "type", pb_key_form(key->type));
        pb_json_bool(json, "required", key->required);
        pb_json_string(json, "range", pb_key_range(key, range, sizeof range));
        pb_json_string(json, "default", key->def);
        pb_json_string(json, "choices", key->choices);
        pb_json_string(json, "doc", key->doc);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
    return cli_finish_json(json);
}

static void print_field(const char *label, const char *text)
{
    printf("%-9s", label);
    cli_wrap(stdout, 9, 80, text);
}

static void print_operator(const struct pb_op *op)
{
    const struct pb_op_doc *doc = &op->doc;
    printf("%s%s%s: %s\n\n", cli_color(stdout, CLI_BOLD), op->name, cli_color(stdout, CLI_PLAIN),
           doc->summary);
    print_field("formula", doc->formula);
    print_field("units", doc->units);
    print_field("nodata", doc->nodata);
    print_field("source", doc->source);
    puts("");
    print_notes(doc->notes);
    puts("parameters:");
    for (size_t i = 0; i < op->n_keys; i++)
        cli_print_key(&op->keys[i]);
}

#define OPS_MAX 128

static const struct pb_op *find_operator(const char *name)
{
    const char *names[OPS_MAX];
    size_t n = 0;
    const struct pb_op *op = pb_op_find(name);
    if (op != NULL)
        return op;
    for (; n < pb_op_count() && n < OPS_MAX; n++)
        names[n] = pb_op_at(n)->name;
    (void)cli_unknown_name("operators", "operator", name, pb_nearest(name, names, n));
    return NULL;
}

static void list_operators(void)
{
    size_t longest = 0;
    for (size_t i = 0; i < pb_op_count(); i++) {
        const size_t length = strlen(pb_op_at(i)->name);
        longest = length > longest ? length : longest;
    }
    for (size_t i = 0; i < pb_op_count(); i++) {
        if (i == 0 || strcmp(pb_op_group(i), pb_op_group(i - 1)) != 0)
            printf("%s%s:\n", i == 0 ? "" : "\n", pb_op_group(i));
        printf("  %-*s %s\n", (int)longest, pb_op_at(i)->name, pb_op_at(i)->doc.summary);
    }
    puts("\n'pushbroom operators NAME' shows the parameters.");
}

int cli_operators(int argc, char **argv)
{
    const char *name;
    bool as_json;
    int rc = cli_parse_word("operators", argc, argv, &as_json, &name);
    if (rc != CLI_DONE)
        return rc;
    const struct pb_op *one = name ? find_operator(name) : NULL;
    if (name != NULL && one == NULL)
        return CLI_USAGE;
    for (size_t i = 0; as_json && rc == CLI_DONE && i < pb_op_count(); i++)
        if (one == NULL || one == pb_op_at(i))
            rc = json_operator(i);
    if (as_json)
        return rc;
    if (one != NULL)
        print_operator(one);
    else
        list_operators();
    return CLI_DONE;
}
