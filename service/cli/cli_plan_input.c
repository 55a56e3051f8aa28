/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Prints the sources of the values of a plan. */
#include "service/cli/cli_plan_lines.h"
#include "service/cli/cli_result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Prints the bands of a file with several bands. */
static void say_bands(const struct pb_json_value *file)
{
    const struct pb_json_value *bands = pb_json_get(file, "bands", NULL),
                               *unnamed = pb_json_get(file, "unnamed_bands", NULL);
    char read[2048] = "", not_read[2048] = "";
    for (size_t i = 0; i < pb_json_count(bands); i++) {
        const struct pb_json_value *band = pb_json_at(bands, i);
        char *list = cli_json_is_true(band, "read") ? read : not_read;
        cli_add(list, sizeof read, "%s%s %.0f", list[0] ? ", " : "", cli_json_text(band, "name"),
                cli_json_number(band, "number"));
    }
    cli_line("bands", "%s", read[0] ? read : "none is read");
    if (not_read[0] != '\0')
        cli_line("not read", "%s: no product needs %s", not_read,
                 strchr(not_read, ',') ? "them" : "it");
    not_read[0] = '\0';
    for (size_t i = 0; i < pb_json_count(unnamed); i++)
        cli_add(not_read, sizeof not_read, "%s%.0f", i ? ", " : "", cli_json_at(unnamed, i));
    if (not_read[0] != '\0')
        cli_line("not read", "%s of the file: input.bands has no name for %s", not_read,
                 pb_json_count(unnamed) == 1 ? "it" : "them");
}

static void say_archive(const struct pb_json_value *archive)
{
    if (archive == NULL)
        return;
    double unpacked = cli_json_number(archive, "unpacked_bytes") / 1e6;
    char how[60] = "read in place";
    if (unpacked > 0)
        (void)snprintf(how, sizeof how, "%.1f MB of them unpacked", unpacked);
    cli_line("archive", "%.0f members, %.1f MB needed, %s", cli_json_number(archive, "members"),
             cli_json_number(archive, "needed_bytes") / 1e6, how);
}

static void say_file(const struct pb_json_value *file, const char *kind)
{
    const struct pb_json_value *bands = pb_json_get(file, "bands", NULL),
                               *band = pb_json_at(bands, 0);
    double n_bands = cli_json_number(file, "n_bands");
    bool of_many = strcmp(kind, "file") != 0 || cli_json_number(file, "page") > 0;
    char key[80] = "file", text[600] = "";
    if (of_many && pb_json_count(bands) == 1) {
        (void)snprintf(key, sizeof key, "band %s", cli_json_text(band, "name"));
        if (n_bands > 1)
            cli_add(text, sizeof text, "band %.0f of ", cli_json_number(band, "number"));
    }
    cli_add(text, sizeof text, "%s, ", cli_json_text(file, "name"));
    cli_add_size(file, text, sizeof text);
    if (n_bands > 1)
        cli_add(text, sizeof text, ", %.0f bands of %s", n_bands, cli_json_text(file, "data_type"));
    else
        cli_add(text, sizeof text, ", %s", cli_json_text(file, "data_type"));
    if (cli_json_text(file, "read_as")[0] != '\0')
        cli_add(text, sizeof text, " as %s", cli_json_text(file, "read_as"));
    const char *packed = cli_json_text(file, "compression");
    cli_add(text, sizeof text, ", %s", strcmp(packed, "NONE") == 0 ? "uncompressed" : packed);
    if (cli_json_number(file, "page") > 0)
        cli_add(text, sizeof text, "; page %.0f", cli_json_number(file, "page"));
    if (cli_json_number(file, "pages") > 1)
        cli_add(text, sizeof text, "; the first of %.0f pages, the others are not read",
                cli_json_number(file, "pages"));
    if (of_many && cli_json_is_true(file, "is_grid"))
        cli_add(text, sizeof text, "; the grid");
    if (cli_json_text(file, "resample")[0] != '\0')
        cli_add(text, sizeof text, "; %s", cli_json_text(file, "resample"));
    cli_add_scale(file, text, sizeof text);
    cli_line(key, "%s", text);
    if (!of_many || pb_json_count(bands) != 1)
        say_bands(file);
}

/* Lists the names of an array of bands; returns their count. */
static size_t list_bands(const struct pb_json_value *plan, const char *key, char *out, size_t bytes)
{
    const struct pb_json_value *bands = pb_json_get(plan, key, NULL);
    const size_t n = pb_json_count(bands);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        cli_add(out, bytes, "%s%s", i ? ", " : "", cli_json_text(pb_json_at(bands, i), "band"));
    return n;
}

/* Prints the bands of optional files that the scene lacks. */
static void say_absent(const struct pb_json_value *plan)
{
    char text[4000];
    const size_t n = list_bands(plan, "absent", text, sizeof text);
    if (n > 0)
        cli_line("not there", "%s: the scene lacks the optional files, so %s valid nowhere", text,
                 n == 1 ? "it is" : "they are");
}

/* Prints the order in which files are counted, and its reason. */
static void say_order(const struct pb_json_value *plan)
{
    const struct pb_json_value *order = pb_json_get(plan, "order", NULL);
    const struct pb_json_value *files = pb_json_get(order, "files", NULL);
    const bool dated = strcmp(cli_json_text(order, "by"), "date") == 0;
    char text[4000] = "";
    const char *by = cli_json_text(order, "by");
    if (strcmp(by, "cloud") == 0 || strcmp(by, "list") == 0) {
        cli_result_order(order);
        return;
    }
    for (size_t i = 0; i < pb_json_count(files); i++) {
        const struct pb_json_value *file = pb_json_at(files, i);
        cli_add(text, sizeof text, "%s%.0f %.200s", i ? ", " : "", cli_json_number(file, "nth"),
                dated ? cli_json_text(file, "date") : cli_json_text(file, "file"));
    }
    if (order != NULL)
        cli_line("order", "%s: by %s%s (input.order)", text,
                 dated ? "(?<date>...) of the names" : "the names",
                 cli_json_is_true(order, "descending") ? ", from the last" : "");
}

/* Prints the files that are not used, up to a number of names that is still readable. */
static void say_left_out(const struct pb_json_value *plan)
{
    const struct pb_json_value *names = pb_json_get(plan, "not_used", NULL);
    size_t n = pb_json_count(names), shown = n > 12 ? 10 : n;
    char text[4000];
    const size_t unopened = list_bands(plan, "not_opened", text, sizeof text);
    if (unopened > 0)
        cli_line("not opened", "%s: no product needs %s", text, unopened == 1 ? "it" : "them");
    say_absent(plan);
    text[0] = '\0';
    for (size_t i = 0; i < shown; i++)
        cli_add(text, sizeof text, "%s%.200s", i ? ", " : "",
                pb_json_text_of(pb_json_at(names, i)));
    if (shown < n)
        cli_add(text, sizeof text, " and %zu more", n - shown);
    if (n > 0)
        cli_line("not used", "%s: no pattern of the pipeline fits %s%s", text,
                 n == 1 ? "it" : "them",
                 cli_json_is_true(plan, "counts_files") ? ", or nth counts fewer files" : "");
}

static void say_metadata(const struct pb_json_value *plan)
{
    static const char *const words[] = {"platform", "product", "level"};
    const struct pb_json_value *metadata = pb_json_get(plan, "metadata", NULL);
    char text[600] = "";
    if (metadata == NULL)
        return;
    cli_add(text, sizeof text, "%s: %s", cli_json_text(metadata, "file"),
            cli_json_text(metadata, "family"));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (cli_json_text(metadata, words[i])[0] != '\0')
            cli_add(text, sizeof text, ", %s", cli_json_text(metadata, words[i]));
    if (cli_json_text(metadata, "baseline")[0] != '\0')
        cli_add(text, sizeof text, ", baseline %s", cli_json_text(metadata, "baseline"));
    if (!isnan(cli_json_number(metadata, "sun_elevation")))
        cli_add(text, sizeof text, ", sun %.1f degrees high",
                cli_json_number(metadata, "sun_elevation"));
    else if (cli_json_text(metadata, "companion")[0] != '\0')
        cli_add(text, sizeof text, "; the sun's position is in %s (input.metadata)",
                cli_json_text(metadata, "companion"));
    if (!isnan(cli_json_number(metadata, "cloud_cover")))
        cli_add(text, sizeof text, ", clouds %.0f %%", cli_json_number(metadata, "cloud_cover"));
    cli_line("metadata", "%s", text);
}

/* Finds a product that has a time; NULL if absent. */
static const struct pb_json_value *dated(const struct pb_json_value *plan)
{
    const struct pb_json_value *products = pb_json_get(plan, "products", NULL);
    for (size_t i = 0; i < pb_json_count(products); i++)
        if (cli_json_text(pb_json_at(products, i), "pushbroom:datetime_source")[0] != '\0')
            return pb_json_at(products, i);
    return NULL;
}

/* Prints when the scene was acquired, and the source of that time. */
static void say_time(const struct pb_json_value *plan)
{
    const struct pb_json_value *item = dated(plan), *metadata = pb_json_get(plan, "metadata", NULL);
    const char *source = cli_json_text(item, "pushbroom:datetime_source");
    const char *of = strcmp(source, "metadata") == 0 ? "the scene's metadata"
                     : strcmp(source, "name") == 0   ? "the scene's name (stac.datetime)"
                     : strcmp(source, "tag") == 0    ? "the file's tag DateTime (stac.datetime)"
                     : strcmp(source, "config") == 0
                         ? "the configuration (stac.datetime)"
                         : "the file's modification time (stac.datetime)";
    if (cli_json_text(item, "datetime")[0] != '\0')
        cli_line("taken", "%s, by %s", cli_json_text(item, "datetime"), of);
    else if (item != NULL)
        cli_line("taken", "%s to %s, by %s", cli_json_text(item, "start_datetime"),
                 cli_json_text(item, "end_datetime"), of);
    else if (cli_json_text(metadata, "datetime")[0] != '\0')
        cli_line("taken", "%s, by the scene's metadata", cli_json_text(metadata, "datetime"));
}

void cli_plan_input(const struct pb_json_value *plan)
{
    const struct pb_json_value *files = pb_json_get(plan, "files", NULL);
    cli_line("scene", "%s", cli_json_text(plan, "scene"));
    say_time(plan);
    say_metadata(plan);
    say_archive(pb_json_get(plan, "archive", NULL));
    for (size_t i = 0; i < pb_json_count(files); i++)
        say_file(pb_json_at(files, i), cli_json_text(plan, "kind"));
    say_order(plan);
    say_left_out(plan);
}
