/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A plan in lines "key  words". What a terminal is too narrow for goes on in the next line, below
 * the words. */
#include "service/cli/cli_plan.h"

#include "config/base/json_reader.h"
#include "service/cli/cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define KEY_COLUMNS 13 /* two spaces, the key and a space */

__attribute__((format(printf, 2, 3))) static void say(const char *key, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int n = printf("  %s%-10s%s ", cli_color(stdout, CLI_DIM), key, cli_color(stdout, CLI_PLAIN));
    (void)n;
    if (cli_is_terminal(stdout))
        cli_wrap(stdout, KEY_COLUMNS, cli_columns(stdout), text);
    else
        puts(text);
}

static const char *text_of(const struct pb_json_value *object, const char *key)
{
    const char *text = pb_json_get_text(object, key);
    return text != NULL ? text : "";
}

static double number_of(const struct pb_json_value *object, const char *key)
{
    const struct pb_json_value *value = pb_json_get(object, key, NULL);
    return value != NULL && pb_json_is_plain(value) ? strtod(pb_json_source(value), NULL)
                                                    : (double)NAN;
}

static bool is_true(const struct pb_json_value *object, const char *key)
{
    bool value = false;
    return pb_json_get_bool(object, key, &value) == 0 && value;
}

static double at(const struct pb_json_value *array, size_t i)
{
    const struct pb_json_value *value = pb_json_at(array, i);
    return value != NULL ? strtod(pb_json_source(value), NULL) : (double)NAN;
}

/* Adds to a text of n bytes, as far as there is room. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t n, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, n - used, format, args);
    va_end(args);
}

/* --- where the values are from -------------------------------------------------------------- */

/* "349 x 352 px of 28.5 m" */
static void add_size(const struct pb_json_value *of, char *text, size_t n)
{
    const struct pb_json_value *metres = pb_json_get(of, "pixel_metres", NULL);
    double x = at(metres, 0), y = at(metres, 1);
    add(text, n, "%.0f x %.0f px", number_of(of, "width"), number_of(of, "height"));
    if (metres == NULL)
        return;
    if (fabs(x - y) <= 0.001 * x)
        add(text, n, " of %.4g m", x);
    else
        add(text, n, " of %.4g x %.4g m", x, y);
}

/* The bands of a file of several. */
static void say_bands(const struct pb_json_value *file)
{
    const struct pb_json_value *bands = pb_json_get(file, "bands", NULL),
                               *unnamed = pb_json_get(file, "unnamed_bands", NULL);
    char read[2048] = "", not_read[2048] = "";
    for (size_t i = 0; i < pb_json_count(bands); i++) {
        const struct pb_json_value *band = pb_json_at(bands, i);
        char *list = is_true(band, "read") ? read : not_read;
        add(list, sizeof read, "%s%s %.0f", list[0] ? ", " : "", text_of(band, "name"),
            number_of(band, "number"));
    }
    say("bands", "%s", read[0] ? read : "none is read");
    if (not_read[0] != '\0')
        say("not read", "%s: no product needs %s", not_read, strchr(not_read, ',') ? "them" : "it");
    not_read[0] = '\0';
    for (size_t i = 0; i < pb_json_count(unnamed); i++)
        add(not_read, sizeof not_read, "%s%.0f", i ? ", " : "", at(unnamed, i));
    if (not_read[0] != '\0')
        say("not read", "%s of the file: input.bands has no name for %s", not_read,
            pb_json_count(unnamed) == 1 ? "it" : "them");
}

/* What the configuration makes of stored values. */
static void add_scale(const struct pb_json_value *of, char *text, size_t n)
{
    double scale = number_of(of, "scale"), offset = number_of(of, "offset");
    if (scale != 1 || offset != 0)
        add(text, n, "; value = stored * %.10g", scale);
    if (offset != 0)
        add(text, n, " %c %.10g", offset < 0 ? '-' : '+', fabs(offset));
}

static void say_archive(const struct pb_json_value *archive)
{
    if (archive == NULL)
        return;
    double unpacked = number_of(archive, "unpacked_bytes") / 1e6;
    char how[60] = "read in place";
    if (unpacked > 0)
        (void)snprintf(how, sizeof how, "%.1f MB of them unpacked", unpacked);
    say("archive", "%.0f members, %.1f MB needed, %s", number_of(archive, "members"),
        number_of(archive, "needed_bytes") / 1e6, how);
}

static void say_file(const struct pb_json_value *file, const char *kind)
{
    const struct pb_json_value *bands = pb_json_get(file, "bands", NULL),
                               *band = pb_json_at(bands, 0);
    double n_bands = number_of(file, "n_bands");
    bool of_many = strcmp(kind, "file") != 0;
    char key[80] = "file", text[600] = "";
    if (of_many && pb_json_count(bands) == 1) {
        (void)snprintf(key, sizeof key, "band %s", text_of(band, "name"));
        if (n_bands > 1)
            add(text, sizeof text, "band %.0f of ", number_of(band, "number"));
    }
    add(text, sizeof text, "%s, ", text_of(file, "name"));
    add_size(file, text, sizeof text);
    if (n_bands > 1)
        add(text, sizeof text, ", %.0f bands of %s", n_bands, text_of(file, "data_type"));
    else
        add(text, sizeof text, ", %s", text_of(file, "data_type"));
    if (text_of(file, "read_as")[0] != '\0')
        add(text, sizeof text, " as %s", text_of(file, "read_as"));
    add(text, sizeof text, ", %s", text_of(file, "compression"));
    if (of_many && is_true(file, "is_grid"))
        add(text, sizeof text, "; the grid");
    if (text_of(file, "resample")[0] != '\0')
        add(text, sizeof text, "; %s", text_of(file, "resample"));
    add_scale(file, text, sizeof text);
    say(key, "%s", text);
    if (!of_many || pb_json_count(bands) != 1)
        say_bands(file);
}

/* Names up to a number that a reader takes in. */
static void say_left_out(const struct pb_json_value *plan)
{
    const struct pb_json_value *bands = pb_json_get(plan, "not_opened", NULL),
                               *names = pb_json_get(plan, "not_used", NULL);
    size_t n = pb_json_count(names), shown = n > 12 ? 10 : n;
    char text[4000] = "";
    for (size_t i = 0; i < pb_json_count(bands); i++)
        add(text, sizeof text, "%s%s", i ? ", " : "", text_of(pb_json_at(bands, i), "band"));
    if (text[0] != '\0')
        say("not opened", "%s: no product needs %s", text,
            pb_json_count(bands) == 1 ? "it" : "them");
    text[0] = '\0';
    for (size_t i = 0; i < shown; i++)
        add(text, sizeof text, "%s%.200s", i ? ", " : "", pb_json_text_of(pb_json_at(names, i)));
    if (shown < n)
        add(text, sizeof text, " and %zu more", n - shown);
    if (n > 0)
        say("not used", "%s: no pattern of the pipeline fits %s", text, n == 1 ? "it" : "them");
}

static void say_metadata(const struct pb_json_value *plan)
{
    static const char *const words[] = {"platform", "product", "level"};
    const struct pb_json_value *metadata = pb_json_get(plan, "metadata", NULL);
    char text[600] = "";
    if (metadata == NULL)
        return;
    add(text, sizeof text, "%s: %s", text_of(metadata, "file"), text_of(metadata, "family"));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (text_of(metadata, words[i])[0] != '\0')
            add(text, sizeof text, ", %s", text_of(metadata, words[i]));
    if (text_of(metadata, "baseline")[0] != '\0')
        add(text, sizeof text, ", baseline %s", text_of(metadata, "baseline"));
    if (!isnan(number_of(metadata, "sun_elevation")))
        add(text, sizeof text, ", sun %.1f degrees high", number_of(metadata, "sun_elevation"));
    else if (text_of(metadata, "companion")[0] != '\0')
        add(text, sizeof text, "; where the sun stood, %s says (input.metadata)",
            text_of(metadata, "companion"));
    if (!isnan(number_of(metadata, "cloud_cover")))
        add(text, sizeof text, ", clouds %.0f %%", number_of(metadata, "cloud_cover"));
    say("metadata", "%s", text);
}

/* The product that has a time; NULL = none has. */
static const struct pb_json_value *dated(const struct pb_json_value *plan)
{
    const struct pb_json_value *products = pb_json_get(plan, "products", NULL);
    for (size_t i = 0; i < pb_json_count(products); i++)
        if (text_of(pb_json_at(products, i), "pushbroom:datetime_source")[0] != '\0')
            return pb_json_at(products, i);
    return NULL;
}

/* When the scene was taken, and who says so. */
static void say_time(const struct pb_json_value *plan)
{
    const struct pb_json_value *item = dated(plan), *metadata = pb_json_get(plan, "metadata", NULL);
    const char *source = text_of(item, "pushbroom:datetime_source");
    const char *of = strcmp(source, "metadata") == 0 ? "the scene's metadata"
                     : strcmp(source, "name") == 0   ? "the scene's name (stac.datetime)"
                     : strcmp(source, "tag") == 0    ? "the file's tag DateTime (stac.datetime)"
                     : strcmp(source, "config") == 0
                         ? "the configuration (stac.datetime)"
                         : "the file's modification time (stac.datetime)";
    if (text_of(item, "datetime")[0] != '\0')
        say("taken", "%s, by %s", text_of(item, "datetime"), of);
    else if (item != NULL)
        say("taken", "%s to %s, by %s", text_of(item, "start_datetime"),
            text_of(item, "end_datetime"), of);
    else if (text_of(metadata, "datetime")[0] != '\0')
        say("taken", "%s, by the scene's metadata", text_of(metadata, "datetime"));
}

/* --- what becomes of them ------------------------------------------------------------------- */

static void say_calibration(const struct pb_json_value *plan)
{
    const struct pb_json_value *list = pb_json_get(plan, "calibration", NULL);
    for (size_t i = 0; i < pb_json_count(list); i++) {
        const struct pb_json_value *one = pb_json_at(list, i);
        say(i == 0 ? "calibrate" : "", "%s = %s of band %s: %s", text_of(one, "band"),
            text_of(one, "to"), text_of(one, "of"), text_of(one, "formula"));
    }
    if (text_of(plan, "calibration_why")[0] != '\0')
        say("", "%s", text_of(plan, "calibration_why"));
}

static void say_steps(const struct pb_json_value *plan)
{
    const struct pb_json_value *steps = pb_json_get(plan, "steps", NULL);
    for (size_t i = 0; i < pb_json_count(steps); i++) {
        const struct pb_json_value *step = pb_json_at(steps, i);
        char key[32];
        (void)snprintf(key, sizeof key, "step %zu", i + 1);
        say(key, "%s", text_of(step, "text"));
        if (text_of(step, "note")[0] != '\0')
            say("", "%s", text_of(step, "note"));
    }
}

static void say_grid(const struct pb_json_value *plan)
{
    const struct pb_json_value *grid = pb_json_get(plan, "grid", NULL),
                               *transform = pb_json_get(grid, "transform", NULL);
    char text[400] = "";
    add(text, sizeof text, "%s, ",
        text_of(grid, "crs")[0] != '\0' ? text_of(grid, "crs")
        : is_true(grid, "has_crs")      ? "a coordinate system without a code"
                                        : "no coordinate system");
    add_size(grid, text, sizeof text);
    if (transform != NULL)
        add(text, sizeof text, ", %s corner %.10g, %.10g%s",
            at(transform, 5) < 0 ? "upper left" : "first", at(transform, 0), at(transform, 3),
            at(transform, 2) != 0 || at(transform, 4) != 0 ? ", rotated" : "");
    else if (number_of(grid, "gcps") > 0)
        add(text, sizeof text, ", placed by %.0f ground control points", number_of(grid, "gcps"));
    else if (is_true(grid, "rpc"))
        add(text, sizeof text, ", placed by RPCs");
    else
        add(text, sizeof text, ", not placed on the Earth");
    say("grid", "%s", text);
}

/* --- what is made --------------------------------------------------------------------------- */

/* "NDVI, EVI" */
static void add_bands(const struct pb_json_value *product, char *text, size_t n)
{
    const struct pb_json_value *bands = pb_json_get(product, "bands", NULL);
    for (size_t i = 0; i < pb_json_count(bands); i++)
        add(text, n, "%s%s", i ? ", " : "", pb_json_text_of(pb_json_at(bands, i)));
}

/* ", float32, nodata nan, deflate" */
static void add_values(const struct pb_json_value *product, char *text, size_t n)
{
    const struct pb_json_value *nodata = pb_json_get(product, "nodata", NULL);
    if (text_of(product, "data_type")[0] != '\0')
        add(text, n, ", %s", text_of(product, "data_type"));
    if (nodata != NULL && pb_json_is_plain(nodata))
        add(text, n, ", nodata %.10g", number_of(product, "nodata"));
    else if (nodata != NULL)
        add(text, n, ", nodata %s", text_of(product, "nodata"));
    if (is_true(product, "mask"))
        add(text, n, ", with a mask");
    if (is_true(product, "alpha"))
        add(text, n, ", with alpha");
    if (pb_json_get(product, "scale", NULL) != NULL)
        add_scale(product, text, n);
    if (text_of(product, "ramp")[0] != '\0')
        add(text, n, ", colours %s", text_of(product, "ramp"));
    if (text_of(product, "compress")[0] != '\0')
        add(text, n, ", %s", text_of(product, "compress"));
}

static void say_product(const struct pb_json_value *product)
{
    char text[2000] = "";
    add(text, sizeof text, "%s", text_of(product, "file"));
    if (pb_json_count(pb_json_get(product, "bands", NULL)) > 0)
        add(text, sizeof text, ": ");
    add_bands(product, text, sizeof text);
    if (!isnan(number_of(product, "width")))
        add(text, sizeof text, ", %.0f x %.0f px", number_of(product, "width"),
            number_of(product, "height"));
    add_values(product, text, sizeof text);
    if (text_of(product, "collection")[0] != '\0')
        add(text, sizeof text, ": of the collection %s", text_of(product, "collection"));
    say(text_of(product, "type"), "%s", text);
}

/* What lies where the products go, and what becomes of it. */
static void say_place(const struct pb_json_value *plan)
{
    const char *there = text_of(plan, "there"), *exists = text_of(plan, "exists");
    char rule[100];
    (void)snprintf(rule, sizeof rule, "%s (output.exists: %s)",
                   strcmp(exists, "refuse") == 0    ? "refused"
                   : strcmp(exists, "replace") == 0 ? "replaced as well"
                                                    : "left, and these go beside them",
                   exists);
    say("into", "%s", text_of(plan, "directory"));
    if (strcmp(there, "products") == 0)
        say("", "products are there: they are replaced (output.exists: %s)", exists);
    else if (strcmp(there, "alike") == 0)
        say("",
            "products of an input of this size are there: replaced when its content is the "
            "same, else %s",
            rule);
    else if (strcmp(there, "other pipelines") == 0)
        say("", "other pipelines' products of this input are there; they stay");
}

static void say_memory(const struct pb_json_value *plan)
{
    const double mib = 1024.0 * 1024.0;
    say("memory", "%.0f MiB of the %.0f of compute.memory; computed on %s",
        ceil(number_of(plan, "memory_bytes") / mib), number_of(plan, "memory_budget_bytes") / mib,
        text_of(plan, "device"));
}

/* What complex pixels become, which digits are kept, a gate and passes before are of interest to
 * all; the rest to who tunes. */
static void say_schedule(const struct pb_json_value *plan, bool verbose)
{
    const struct pb_json_value *schedule = pb_json_get(plan, "schedule", NULL);
    const char *key;
    for (size_t i = 0; (key = pb_json_key(schedule, i)) != NULL; i++) {
        if (strcmp(key, "gate") == 0 || strcmp(key, "before") == 0 || strcmp(key, "pixels") == 0 ||
            strcmp(key, "digits") == 0)
            say(key, "%s", text_of(schedule, key));
    }
    if (!verbose)
        return;
    puts("");
    for (size_t i = 0; (key = pb_json_key(schedule, i)) != NULL; i++)
        say(key, "%s", text_of(schedule, key));
}

void cli_plan_text(const char *input, const char *pipeline, const char *why,
                   const struct pb_json_value *plan, bool verbose)
{
    const struct pb_json_value *files = pb_json_get(plan, "files", NULL),
                               *products = pb_json_get(plan, "products", NULL);
    printf("%s%s%s\n", cli_color(stdout, CLI_BOLD), input, cli_color(stdout, CLI_PLAIN));
    say("pipeline", "%s: %s", pipeline, why);
    say("scene", "%s", text_of(plan, "scene"));
    say_time(plan);
    say_metadata(plan);
    say_archive(pb_json_get(plan, "archive", NULL));
    for (size_t i = 0; i < pb_json_count(files); i++)
        say_file(pb_json_at(files, i), text_of(plan, "kind"));
    say_left_out(plan);
    say("valid", "%s", text_of(plan, "valid"));
    say_calibration(plan);
    say_steps(plan);
    say_grid(plan);
    say_place(plan);
    for (size_t i = 0; i < pb_json_count(products); i++)
        say_product(pb_json_at(products, i));
    say_memory(plan);
    say_schedule(plan, verbose);
    (void)cli_flush();
}
