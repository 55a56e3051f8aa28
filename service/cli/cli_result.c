/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli_result.h"
#include "config/base/json_path.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/base/text_clean.h"
#include "config/patterns.h"
#include "service/cli/cli.h"
#include "config/base/err_json.h"
#include "service/worker/worker_lines.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LONG_S 10 /* longer runs report the limit of their speed */

static void print_object(struct pb_json *json)
{
    const char *text = pb_json_text(json, NULL);
    puts(text ? text : "null");
    (void)cli_flush();
    pb_json_destroy(json);
}

/* Begins an object about an input, or about a scene of it. */
static struct pb_json *begin(const char *input, const char *part)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_path(json, "input", input);
    if (part != NULL)
        pb_json_string(json, "scene", part);
    return json;
}

void cli_result_plan(const char *input, const char *part, const char *pipeline, const char *plan,
                     const struct pb_err *err)
{
    struct pb_json *json = begin(input, part);
    pb_json_string(json, "pipeline", pipeline);
    bool skipped = err != NULL && err->code == PB_E_INPUT_OUTSIDE;
    pb_json_string(json, "status", err == NULL ? "planned" : skipped ? "skipped" : "failed");
    pb_json_raw(json, "plan", plan);
    if (skipped)
        pb_json_string(json, "skipped", err->msg);
    if (err == NULL || skipped)
        pb_json_null(json, "error");
    else
        pb_err_json(json, "error", err);
    pb_json_end(json);
    print_object(json);
}

/* --- a job's report -------------------------------------------------------------------------*/

static struct pb_json_value *parse(const char *text)
{
    struct pb_json_value *value = NULL;
    if (text != NULL)
        (void)pb_json_parse(text, strlen(text), PB_WORKER_LINE_MAX, &value);
    return value;
}

/* Returns 0 if the number is absent. */
static double number_of(const struct pb_json_value *object, const char *key)
{
    return pb_json_number_of(pb_json_get(object, key, NULL), 0);
}

/* Prints "1.2 GB to it (43% of the link)". */
static void print_crossed(const char *way, double bytes, double share)
{
    char size[16];
    printf("%s %s", cli_bytes(bytes, size, sizeof size), way);
    if (share > 0)
        printf(" (%.0f%% of the link)", 100 * share);
}

/* Prints "under way 0.04 s (83%): decode 0.03 s, compute 0.01 s; set up in 0.10 s". */
static void print_gpu(const struct pb_json_value *gpu)
{
    const struct pb_json_value *work = pb_json_get(gpu, "work", NULL);
    const char *before = ":";
    printf("  %-10s occupied %.2f s (%.0f%%)", "gpu", number_of(gpu, "occupied_ms") / 1e3,
           100 * number_of(gpu, "occupied_share"));
    for (size_t i = 0; i < pb_json_count(work); i++) {
        const struct pb_json_value *one = pb_json_at(work, i);
        const char *name = pb_json_get_text(one, "name");
        if (name == NULL || number_of(one, "ms") <= 0)
            continue;
        printf("%s %s %.2f s", before, name, number_of(one, "ms") / 1e3);
        before = ",";
    }
    if (number_of(gpu, "core_blocks") > 0)
        printf("; %.0f of %.0f blocks decoded by cores", number_of(gpu, "core_blocks"),
               number_of(gpu, "blocks"));
    if (number_of(gpu, "kept_bytes") > 0)
        printf("; %.1f GB of pixels taken from its memory by later passes",
               number_of(gpu, "kept_bytes") / 1e9);
    const struct pb_json_value *managed = pb_json_get(gpu, "managed", NULL);
    if (managed != NULL)
        printf("; at most %.1f of %.1f GB of managed planes there, %.1f GB moved to it",
               number_of(managed, "most_bytes") / 1e9, number_of(managed, "bytes") / 1e9,
               number_of(managed, "in_bytes") / 1e9);
    printf("; set up in %.2f s\n", number_of(gpu, "set_up_ms") / 1e3);
}

static void print_link(const char *device, const struct pb_json_value *link, bool starves)
{
    printf("  %-10s ", device);
    print_crossed("to it", number_of(link, "to_device_bytes"), number_of(link, "to_device_share"));
    printf(", ");
    print_crossed("from it", number_of(link, "from_device_bytes"),
                  number_of(link, "from_device_share"));
    if (starves)
        printf(", idle %.1f s", number_of(link, "starved_ms") / 1e3);
    puts("");
}

static void print_gate(const struct pb_json_value *gate)
{
    const char *why = pb_json_get_text(gate, "why");
    if (why != NULL)
        printf("  %-10s leaves no tile out: %s\n", "gate", why);
    else
        printf("  %-10s %.0f of %.0f tiles left out, %.0f blocks not decoded\n", "gate",
               number_of(gate, "left_out"), number_of(gate, "tiles"),
               number_of(gate, "blocks_not_decoded"));
}

/* Prints "exchange   parts by multiple, rounds by alternating", unless tiles are exchanged in the
 * default way. */
static void print_exchanges(const struct pb_json_value *exchanges)
{
    const char *before = "exchange";
    for (size_t i = 0; i < pb_json_count(exchanges); i++) {
        const struct pb_json_value *one = pb_json_at(exchanges, i);
        const char *of = pb_json_get_text(one, "of"), *by = pb_json_get_text(one, "pattern");
        if (of == NULL || by == NULL || strcmp(by, wic_pattern_unidirectional.name) == 0)
            continue;
        printf(*before != '\0' ? "  %-10s %s by %s" : "%s, %s by %s", before, of, by);
        before = "";
    }
    if (*before == '\0')
        puts("");
}

void cli_result_calibration(const struct pb_json_value *calibration)
{
    for (size_t i = 0; i < pb_json_count(calibration); i++) {
        const struct pb_json_value *one = pb_json_at(calibration, i);
        const char *band = pb_json_get_text(one, "band"), *to = pb_json_get_text(one, "to"),
                   *of = pb_json_get_text(one, "of"), *formula = pb_json_get_text(one, "formula");
        if (band != NULL && to != NULL && of != NULL && formula != NULL)
            printf("  %-10s %s = %s of band %s: %s\n", i == 0 ? "calibrate" : "", band, to, of,
                   formula);
    }
}

void cli_result_sidecars(const struct pb_json_value *sidecars)
{
    static const char *const keys[] = {"read", "unused"};
    bool first = true;
    for (size_t k = 0; k < 2 && sidecars != NULL; k++) {
        const struct pb_json_value *names = pb_json_get(sidecars, keys[k], NULL);
        for (size_t i = 0; i < pb_json_count(names); i++, first = false)
            if (pb_json_text_of(pb_json_at(names, i)) != NULL)
                printf("  %-10s %s%s\n", first ? "sidecars" : "",
                       pb_json_text_of(pb_json_at(names, i)),
                       k == 0 ? "" : ", not read: input.sidecars does not list it");
    }
}

/* Returns "3 % clouds", or "" if clouds do not determine the order. */
static const char *clouds_of(const struct pb_json_value *file, bool by_cloud, char out[64])
{
    out[0] = '\0';
    if (by_cloud && pb_json_get(file, "cloud_cover", NULL) != NULL)
        (void)snprintf(out, 64, ", %g %% clouds", number_of(file, "cloud_cover"));
    else if (by_cloud)
        (void)snprintf(out, 64, ", cloud cover unknown, therefore last");
    return out;
}

/* Prints "order      1 a.tif, 3 % clouds", one line for each file. */
void cli_result_order(const struct pb_json_value *order)
{
    const struct pb_json_value *files = pb_json_get(order, "files", NULL);
    const char *by = pb_json_get_text(order, "by");
    const bool by_cloud = by != NULL && strcmp(by, "cloud") == 0;
    for (size_t i = 0; i < pb_json_count(files); i++) {
        const struct pb_json_value *file = pb_json_at(files, i);
        const char *name = pb_json_get_text(file, "file");
        const int nth = (int)number_of(file, "nth");
        char clouds[64], number[16] = "-";
        bool used = false;
        (void)pb_json_get_bool(file, "used", &used);
        if (nth > 0)
            (void)snprintf(number, sizeof number, "%d", nth);
        printf("  %-10s %s %s%s%s\n", i ? "" : "order", number, name ? name : "",
               clouds_of(file, by_cloud, clouds),
               used      ? ""
               : nth > 0 ? "; not used: nth counts fewer"
                         : "; not used: the list does not have it");
    }
}

/* Prints "tiles      2 made: 32UPE, 32UQE; no valid pixel in 32UPD". */
void cli_result_tiles(const struct pb_json_value *tiles)
{
    static const char *const states[][2] = {
        {"made", "made"}, {"empty", "no valid pixel in"}, {"outside", "not reached by the scene:"}};
    char text[2048] = "";
    for (size_t k = 0; k < sizeof states / sizeof states[0]; k++) {
        size_t n = 0;
        for (size_t i = 0; i < pb_json_count(tiles); i++) {
            const struct pb_json_value *tile = pb_json_at(tiles, i);
            const char *id = pb_json_get_text(tile, "id"), *is = pb_json_get_text(tile, "state");
            if (id == NULL || is == NULL || strcmp(is, states[k][0]) != 0)
                continue;
            const size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, "%s%s%s%s",
                           n > 0      ? ", "
                           : used > 0 ? "; "
                                      : "",
                           n == 0 ? states[k][1] : "",
                           n > 0    ? ""
                           : k == 0 ? ": "
                                    : " ",
                           id);
            n++;
        }
    }
    if (text[0] == '\0')
        return;
    printf("  %-10s ", "tiles");
    cli_wrap(stdout, 13, cli_columns(stdout), text);
}

/* Prints "valid      all pixels but NaN; band 4 is tagged as alpha ...", if there are notes. */
static void print_valid(const struct pb_json_value *report)
{
    const char *valid = pb_json_get_text(report, "valid"),
               *notes = pb_json_get_text(report, "valid_notes");
    char text[1200];
    if (valid == NULL || notes == NULL)
        return;
    (void)snprintf(text, sizeof text, "%s; %s", valid, notes);
    printf("  %-10s ", "valid");
    cli_wrap(stdout, 13, cli_columns(stdout), text);
}

/* Prints "digits     7 pixels of band ID (uint32) ...". */
static void print_digits(const struct pb_json_value *digits)
{
    for (size_t i = 0; i < pb_json_count(digits); i++) {
        const struct pb_json_value *one = pb_json_at(digits, i);
        const char *band = pb_json_get_text(one, "band"), *type = pb_json_get_text(one, "type"),
                   *are = pb_json_get_text(one, "are");
        if (band == NULL || type == NULL || are == NULL)
            continue;
        printf("  %-10s %.0f pixels of band %s (%s) %s\n", i == 0 ? "digits" : "",
               number_of(one, "pixels"), band, type,
               strcmp(are, "rounded") != 0
                   ? "are outside the range of float32 (1.2e-38 to 3.4e38): larger ones are invalid"
               : strcmp(type, "float64") == 0
                   ? "have more digits than float32, in which steps compute"
                   : "are whole numbers that float32 does not hold: steps and float32 products "
                     "take them rounded");
    }
}

void cli_result_notes(const struct pb_json_value *notes)
{
    for (size_t i = 0; i < pb_json_count(notes); i++) {
        const char *text = pb_json_text_of(pb_json_at(notes, i));
        if (text == NULL)
            continue;
        printf("  %-10s ", "note");
        cli_wrap(stdout, 13, cli_columns(stdout), text);
    }
}

void cli_result_limit(const struct pb_json_value *report, bool all)
{
    static const char *const keys[][2] = {{"limited_by", "limited by"}, {"limit", "cores"}};
    bool by_stages = pb_json_get_text(report, "limited_by") != NULL;
    for (size_t i = 0; i < 2; i++) {
        char text[600];
        const char *line = pb_json_get_text(report, keys[i][0]);
        if (line == NULL)
            continue;
        (void)snprintf(text, sizeof text, "%.*s", (int)(all ? strlen(line) : strcspn(line, ";")),
                       line);
        printf("  %-10s ", i == 0 || by_stages ? keys[i][1] : "limit");
        cli_wrap(stdout, 13, cli_columns(stdout), text);
    }
}

static void print_product(const struct pb_json_value *product)
{
    char size[16];
    const char *type = pb_json_get_text(product, "type"), *path = pb_json_get_text(product, "path");
    const char *base = path ? strrchr(path, '/') : NULL;
    printf("  %-10s %8s  %s\n", type ? type : "",
           cli_bytes(number_of(product, "bytes"), size, sizeof size), base ? base + 1 : "");
    double moved = number_of(product, "moved_off_nodata");
    if (moved > 0)
        printf("  %-10s %.0f valid values equal the nodata value; they are stored as the next\n",
               "", moved);
}

void cli_result_skipped(const char *input, const char *why)
{
    char clean[PATH_MAX + 300];
    (void)pb_text_clean(input, clean, sizeof clean);
    printf("%s%s%s skipped, no products: %s\n", cli_color(stdout, CLI_GREEN), clean,
           cli_color(stdout, CLI_PLAIN), why);
    (void)cli_flush();
}

void cli_result_text(const char *input, const struct pb_job *job, bool verbose)
{
    struct pb_json_value *products = parse(job->products), *report = parse(job->report);
    const struct pb_json_value *link = pb_json_get(report, "link", NULL);
    const struct pb_json_value *gate = pb_json_get(report, "gate", NULL);
    const struct pb_json_value *gpu = pb_json_get(report, "gpu", NULL);
    const char *device = pb_json_get_text(report, "device");
    double seconds = (number_of(report, "elapsed_ms") + number_of(report, "publish_ms")) / 1e3;
    char clean[PATH_MAX + 300];
    device = device ? device : "";
    if (pb_job_is_left_out(job)) {
        const char *why = pb_json_get_text(report, "skipped");
        cli_result_skipped(input, why ? why : "");
        pb_json_release(products);
        pb_json_release(report);
        return;
    }
    (void)pb_text_clean(input, clean, sizeof clean);
    printf("%s%s%s -> %s  (%.1f s on %s)\n", cli_color(stdout, CLI_GREEN), clean,
           cli_color(stdout, CLI_PLAIN), job->directory ? job->directory : "", seconds, device);
    for (size_t i = 0; i < pb_json_count(products); i++)
        print_product(pb_json_at(products, i));
    cli_result_tiles(pb_json_get(report, "tiles", NULL));
    cli_result_calibration(pb_json_get(report, "calibration", NULL));
    if (pb_json_get_text(report, "placed_by") != NULL)
        printf("  %-10s the scene by %s\n", "placed", pb_json_get_text(report, "placed_by"));
    print_valid(report);
    cli_result_order(pb_json_get(report, "order", NULL));
    cli_result_sidecars(pb_json_get(report, "sidecars", NULL));
    print_exchanges(pb_json_get(report, "exchanges", NULL));
    if (gate != NULL)
        print_gate(gate);
    print_digits(pb_json_get(report, "digits", NULL));
    if (pb_json_get_text(report, "warning") != NULL) {
        printf("  %-10s ", "warning");
        cli_wrap(stdout, 13, cli_columns(stdout), pb_json_get_text(report, "warning"));
    }
    cli_result_notes(pb_json_get(report, "notes", NULL));
    if (link != NULL)
        print_link(device, link, gpu == NULL);
    if (gpu != NULL)
        print_gpu(gpu);
    if (verbose || seconds > LONG_S)
        cli_result_limit(report, verbose);
    if (pb_json_get_text(report, "warning") != NULL)
        printf("  %-10s %s\n", "warning", pb_json_get_text(report, "warning"));
    (void)cli_flush();
    pb_json_release(products);
    pb_json_release(report);
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

void cli_result_done(const char *input, const char *part, const struct pb_job *job)
{
    struct pb_json *json = begin(input, part);
    pb_json_string(json, "pipeline", job->pipeline);
    pb_json_string(json, "status", "successful");
    pb_json_string(json, "stage", pb_job_is_left_out(job) ? "skipped" : "done");
    pb_json_string(json, "device_why", or_null(job->device_why));
    pb_json_string(json, "directory", job->directory);
    pb_json_raw(json, "products", job->products ? job->products : "[]");
    pb_json_raw(json, "report", job->report ? job->report : "null");
    pb_json_null(json, "error");
    pb_json_end(json);
    print_object(json);
}

void cli_result_failed(const char *input, const char *part, const char *pipeline,
                       const char *device_why, const struct pb_err *err)
{
    struct pb_json *json = begin(input, part);
    pb_json_string(json, "pipeline", pipeline);
    pb_json_string(json, "status", "failed");
    pb_json_string(json, "device_why", or_null(device_why));
    pb_err_json(json, "error", err);
    pb_json_end(json);
    print_object(json);
}
