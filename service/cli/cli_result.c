/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli_result.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "service/cli/cli.h"
#include "service/worker/result_json.h"
#include "service/worker/worker_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_object(struct pb_json *json)
{
    const char *text = pb_json_text(json, NULL);
    puts(text ? text : "null");
    fflush(stdout);
    pb_json_destroy(json);
}

/* Each line of the plan is a word and what it says. */
void cli_result_plan(const char *input, const char *pipeline, char *text)
{
    struct pb_json *json = pb_json_create(false);
    char *save = NULL;
    pb_json_object(json, NULL);
    pb_json_string(json, "input", input);
    pb_json_string(json, "pipeline", pipeline);
    pb_json_string(json, "status", "planned");
    pb_json_object(json, "plan");
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        size_t word = strcspn(line, " "), gap = strspn(line + word, " ");
        const char *rest = line + word + gap;
        line[word] = '\0';
        pb_json_string(json, line, rest);
    }
    pb_json_end(json);
    pb_json_null(json, "error");
    pb_json_end(json);
    print_object(json);
}

/* "1.2 GB to it (43% of the link)" */
static void print_crossed(const char *way, uint64_t bytes, double rate, double seconds)
{
    char size[16];
    printf("%s %s", cli_bytes((double)bytes, size, sizeof size), way);
    if (rate > 0 && seconds > 0)
        printf(" (%.0f%% of the link)", 100 * (double)bytes / (rate * seconds));
}

static void print_link(const struct pb_run_report *report)
{
    const struct pb_link_report *link = &report->link;
    double seconds = (double)report->elapsed_ms / 1e3;
    printf("  %-10s ", report->device);
    print_crossed("to it", link->to_device_bytes, link->to_device_rate, seconds);
    printf(", ");
    print_crossed("from it", link->from_device_bytes, link->from_device_rate, seconds);
    printf(", idle %.1f s\n", (double)link->starved_ns / 1e9);
}

void cli_result_text(const char *input, const struct pb_run_result *r)
{
    char size[16];
    double seconds = (double)(r->report.elapsed_ms + r->report.publish_ms) / 1000.0;
    printf("%s%s%s -> %s  (%.1f s on %s)\n", cli_color(stdout, CLI_GREEN), input,
           cli_color(stdout, CLI_PLAIN), r->directory, seconds, r->report.device);
    for (size_t i = 0; i < r->n_products; i++)
        printf("  %-10s %8s  %s\n", pb_product_kind_name(r->products[i].kind),
               cli_bytes((double)r->products[i].bytes, size, sizeof size), r->products[i].file);
    if (r->report.link.used)
        print_link(&r->report);
    if (r->warning != NULL && r->warning[0] != '\0')
        fprintf(stderr, "pushbroom: %s: %s\n", input, r->warning);
}

void cli_result_json(const char *input, const char *pipeline, const char *device_why,
                     const struct pb_err *err, const struct pb_run_result *r)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "input", input);
    pb_json_string(json, "pipeline", pipeline);
    pb_json_string(json, "status", r ? "successful" : "failed");
    pb_json_string(json, "device_why", device_why[0] ? device_why : NULL);
    if (r != NULL) {
        pb_result_print(json, r);
        pb_json_null(json, "error");
    } else {
        pb_result_print_err(json, "error", err);
    }
    pb_json_end(json);
    print_object(json);
}

/* --- computed apart --------------------------------------------------------------------------*/

static enum pb_product_kind kind_of(const char *word)
{
    int kind = PB_PRODUCT_COG;
    while (kind < PB_PRODUCT_STAC &&
           strcmp(word, pb_product_kind_name((enum pb_product_kind)kind)) != 0)
        kind++;
    return (enum pb_product_kind)kind;
}

static void take_product(const struct pb_json_value *from, struct pb_product_result *out)
{
    const char *path = pb_json_get_text(from, "path"), *type = pb_json_get_text(from, "type");
    const char *base = path ? strrchr(path, '/') : NULL;
    int64_t bytes = 0;
    (void)pb_json_get_int(from, "bytes", &bytes);
    out->kind = kind_of(type ? type : "");
    out->bytes = (uint64_t)bytes;
    (void)snprintf(out->file, sizeof out->file, "%s", base ? base + 1 : "");
}

void cli_result_done_text(const char *input, const char *done)
{
    static const char none[] = "";
    struct pb_json_value *value = NULL;
    (void)pb_json_parse(done, strlen(done), PB_WORKER_LINE_MAX, &value);
    const struct pb_json_value *products = pb_json_get(value, "products", NULL);
    const struct pb_json_value *report = pb_json_get(value, "report", NULL);
    const char *directory = pb_json_get_text(value, "directory");
    const char *device = pb_json_get_text(report, "device");
    size_t n = pb_json_count(products);
    struct pb_run_result result = {.products = calloc(n + 1, sizeof *result.products)};
    (void)snprintf(result.directory, sizeof result.directory, "%s", directory ? directory : none);
    (void)snprintf(result.report.device, sizeof result.report.device, "%s", device ? device : none);
    (void)pb_json_get_int(report, "elapsed_ms", &result.report.elapsed_ms);
    (void)pb_json_get_int(report, "publish_ms", &result.report.publish_ms);
    for (size_t i = 0; result.products != NULL && i < n; i++)
        take_product(pb_json_at(products, i), &result.products[result.n_products++]);
    cli_result_text(input, &result);
    free(result.products);
    pb_json_release(value);
}

/* The report, with the warning as its last member. */
static void print_report(struct pb_json *json, const struct pb_json_value *report,
                         const char *warning)
{
    const char *key;
    pb_json_object(json, "report");
    for (size_t i = 0; (key = pb_json_key(report, i)) != NULL; i++) {
        const struct pb_json_value *value = pb_json_get(report, key, NULL);
        if (value == NULL)
            pb_json_null(json, key);
        else
            pb_json_raw(json, key, pb_json_source(value));
    }
    if (warning[0] != '\0')
        pb_json_string(json, "warning", warning);
    pb_json_end(json);
}

void cli_result_done_json(const char *input, const char *pipeline, const char *device_why,
                          const char *done, const char *warning)
{
    struct pb_json_value *value = NULL;
    struct pb_json *json = pb_json_create(false);
    (void)pb_json_parse(done, strlen(done), PB_WORKER_LINE_MAX, &value);
    pb_json_object(json, NULL);
    pb_json_string(json, "input", input);
    pb_json_string(json, "pipeline", pipeline);
    pb_json_string(json, "status", "successful");
    pb_json_string(json, "device_why", device_why[0] ? device_why : NULL);
    pb_json_string(json, "directory", pb_json_get_text(value, "directory"));
    const struct pb_json_value *products = pb_json_get(value, "products", NULL);
    pb_json_raw(json, "products", products ? pb_json_source(products) : "[]");
    print_report(json, pb_json_get(value, "report", NULL), warning);
    pb_json_null(json, "error");
    pb_json_end(json);
    print_object(json);
    pb_json_release(value);
}
