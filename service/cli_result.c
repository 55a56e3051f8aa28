/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli_result.h"

#include "config/json_writer.h"
#include "service/cli.h"
#include "service/result_json.h"

#include <stdio.h>
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
