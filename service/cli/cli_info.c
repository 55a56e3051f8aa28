/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Commands that look things up: check-config, operators, devices. */
#include "service/cli/cli.h"
#include "service/confine/confine.h"

#include "pipeline/product/product_kinds.h"
#include "config/base/json_writer.h"
#include "config/schema_doc.h"
#include "kernels/nearest.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/device_plan.h"

#include <stdlib.h>
#include <string.h>

int cli_parse_word(const char *command, int argc, char **argv, bool *json, const char **word)
{
    *word = NULL;
    *json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            *json = true;
        else if (argv[i][0] == '-')
            return cli_unknown_option(command, argv[i], (const char *const[]){"--json"}, 1);
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

static int check_config_json(const char *path)
{
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    int rc = pb_config_load(path, &pb_products, &errors, &config);
    struct pb_json *json = pb_json_create(true);
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
    char *text = config ? pb_config_print(config) : NULL;
    pb_json_string(json, "effective", text);
    pb_json_end(json);
    free(text);
    pb_config_destroy(config);
    (void)cli_finish_json(json);
    return rc == 0 ? CLI_DONE : CLI_USAGE;
}

int cli_check_config(int argc, char **argv)
{
    const char *path;
    bool json;
    int rc = cli_parse_word("check-config", argc, argv, &json, &path);
    if (rc != CLI_DONE)
        return rc;
    if (path == NULL)
        return cli_usage("check-config", "no FILE given");
    if (json)
        return check_config_json(path);
    struct pb_config *config = cli_load_config(path);
    if (config == NULL)
        return CLI_USAGE;
    char *text = pb_config_print(config);
    if (text != NULL)
        fputs(text, stdout);
    fprintf(stderr, "%s%s is fine:%s %zu pipeline%s\n", cli_color(stderr, CLI_GREEN), path,
            cli_color(stderr, CLI_PLAIN), config->n_pipelines, config->n_pipelines == 1 ? "" : "s");
    rc = text ? CLI_DONE : CLI_JOB_FAILED;
    free(text);
    pb_config_destroy(config);
    return rc;
}

/* --- operators ------------------------------------------------------------------------------- */

void cli_print_key(const struct pb_key *key)
{
    char room[120];
    const char *range = pb_key_range(key, room, sizeof room);
    printf("  %-10s %s%s", key->name, key->choices ? key->choices : pb_key_form(key->type),
           key->required ? ", required" : "");
    if (range != NULL)
        printf(", %s", range);
    if (key->def != NULL)
        printf(", default %s", key->def);
    printf("\n             ");
    cli_wrap(stdout, 13, 80, key->doc);
}

/* Paragraphs are set anew, indented lines (examples) stay as they are; ends with an empty line. */
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

static void json_operator(struct pb_json *json, const struct pb_op *op)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "name", op->name);
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

static const struct pb_op *find_operator(const char *name)
{
    const char *names[64];
    size_t n = 0;
    const struct pb_op *op = pb_op_find(name);
    if (op != NULL)
        return op;
    for (; n < pb_op_count() && n < 64; n++)
        names[n] = pb_op_at(n)->name;
    (void)cli_unknown_name("operators", "operator", name, pb_nearest(name, names, n));
    return NULL;
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
    if (as_json) {
        struct pb_json *json = pb_json_create(true);
        pb_json_array(json, NULL);
        for (size_t i = 0; i < pb_op_count(); i++)
            if (one == NULL || one == pb_op_at(i))
                json_operator(json, pb_op_at(i));
        pb_json_end(json);
        return cli_finish_json(json);
    }
    for (size_t i = 0; one == NULL && i < pb_op_count(); i++)
        printf("%-11s %s\n", pb_op_at(i)->name, pb_op_at(i)->doc.summary);
    if (one == NULL) {
        puts("\n'pushbroom operators NAME' tells the parameters.");
        return CLI_DONE;
    }
    print_operator(one);
    return CLI_DONE;
}

/* --- devices --------------------------------------------------------------------------------- */

static void json_plans(struct pb_json *json, const struct pb_device *d)
{
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    int n = d->usable ? pb_device_plans(d->index, plans) : 0;
    pb_json_array(json, "plans");
    for (int i = 0; i < n; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "tile", plans[i].tile);
        pb_json_string(json, "plan", plans[i].plan);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static void print_plans(const struct pb_device *d)
{
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    int n = pb_device_plans(d->index, plans);
    for (int i = 0; i < n; i++) {
        printf("        %-7s %s:\n                ", i == 0 ? "plans" : "", plans[i].tile);
        cli_wrap(stdout, 16, 80, plans[i].plan);
    }
}

static void json_device(struct pb_json *json, const struct pb_device *d, double to, double from)
{
    char id[24];
    (void)snprintf(id, sizeof id, "cuda:%d", d->index);
    pb_json_object(json, NULL);
    pb_json_string(json, "device", id);
    pb_json_string(json, "name", d->name);
    pb_json_string(json, "arch", d->arch);
    pb_json_int(json, "memory_bytes", (int64_t)d->memory_bytes);
    pb_json_int(json, "free_bytes", (int64_t)d->free_bytes);
    pb_json_int(json, "multiprocessors", d->multiprocessors);
    pb_json_bool(json, "integrated", d->integrated);
    pb_json_bool(json, "managed", d->managed);
    pb_json_bool(json, "time_limited", d->time_limited);
    pb_json_bool(json, "mps", d->mps);
    pb_json_number(json, "to_device_bytes_per_s", to);
    pb_json_number(json, "from_device_bytes_per_s", from);
    pb_json_bool(json, "usable", d->usable);
    pb_json_string(json, "why", d->usable ? NULL : d->why);
    json_plans(json, d);
    pb_json_end(json);
}

static void print_device(const struct pb_device *d, double to, double from)
{
    char memory[16], available[16], in[16], out[16];
    if (!d->usable) {
        printf("cuda:%d  %s  %snot usable%s: %s\n", d->index, d->name, cli_color(stdout, CLI_RED),
               cli_color(stdout, CLI_PLAIN), d->why);
        return;
    }
    printf("cuda:%d  %s (%s), %d multiprocessors\n", d->index, d->name, d->arch,
           d->multiprocessors);
    printf("        memory  %s, %s free%s\n",
           cli_bytes((double)d->memory_bytes, memory, sizeof memory),
           cli_bytes((double)d->free_bytes, available, sizeof available),
           d->integrated ? ", shared with the CPU" : "");
    printf("        link    %s/s to the device, %s/s from it (pinned memory)\n",
           cli_bytes(to, in, sizeof in), cli_bytes(from, out, sizeof out));
    printf("        buffers pinned%s\n",
           d->managed ? ", managed" : "; managed ones do not work beside a running host");
    printf(
        "        kernels %s\n",
        d->time_limited ? "end by force after seconds, for a display waits: by streams alone"
        : d->mps
            ? "may stay; processes share the GPU through MPS"
            : "may stay, of the process that owns it; without MPS other programs wait their turn");
    print_plans(d);
}

static void print_confinement(const char *text)
{
    char line[PB_CONFINE_TEXT_BYTES + 32];
    (void)snprintf(line, sizeof line, "service jobs: %s", text);
    printf("        ");
    cli_wrap(stdout, 8, 80, line);
}

int cli_devices(int argc, char **argv)
{
    const char *word;
    bool as_json;
    char why[200], cpu[128];
    char confined[PB_CONFINE_TEXT_BYTES];
    struct pb_device devices[16];
    pb_confine_describe(&(struct pb_confine){.address_bytes = 1}, confined);
    int rc = cli_parse_word("devices", argc, argv, &as_json, &word);
    if (rc != CLI_DONE || word != NULL)
        return rc != CLI_DONE ? rc : cli_usage("devices", "what does '%s' mean?", word);
    int n = pb_device_list(devices, 16, why);
    pb_device_cpu_name(cpu, sizeof cpu);
    struct pb_json *json = as_json ? pb_json_create(true) : NULL;
    if (as_json) {
        pb_json_array(json, NULL);
        pb_json_object(json, NULL);
        pb_json_string(json, "device", "cpu");
        pb_json_string(json, "name", cpu);
        pb_json_int(json, "cores", pb_device_cores());
        pb_json_bool(json, "usable", true);
        pb_json_string(json, "confined", confined);
        pb_json_end(json);
    } else {
        printf("cpu     %s, %u core%s for this process\n", cpu, pb_device_cores(),
               pb_device_cores() == 1 ? "" : "s");
        print_confinement(confined);
    }
    for (int i = 0; i < n; i++) {
        double to = 0, from = 0;
        if (devices[i].usable)
            pb_device_link(devices[i].index, 64u << 20, &to, &from);
        if (as_json)
            json_device(json, &devices[i], to, from);
        else
            print_device(&devices[i], to, from);
    }
    if (!as_json) {
        if (n == 0)
            printf("cuda    none: %s\n", why);
        return CLI_DONE;
    }
    pb_json_end(json);
    return cli_finish_json(json);
}
