/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli_plan.h"
#include "service/cli/cli_result.h"

#include "config/base/text_clean.h"
#include "service/cli/cli.h"
#include "service/cli/cli_plan_lines.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* --- steps of the pipeline -------------------------------------------------------------------- */

static void say_calibration(const struct pb_json_value *plan)
{
    const struct pb_json_value *list = pb_json_get(plan, "calibration", NULL);
    for (size_t i = 0; i < pb_json_count(list); i++) {
        const struct pb_json_value *one = pb_json_at(list, i);
        cli_line(i == 0 ? "calibrate" : "", "%s = %s of band %s: %s", cli_json_text(one, "band"),
                 cli_json_text(one, "to"), cli_json_text(one, "of"), cli_json_text(one, "formula"));
    }
    if (cli_json_text(plan, "calibration_why")[0] != '\0')
        cli_line("", "%s", cli_json_text(plan, "calibration_why"));
}

static void say_steps(const struct pb_json_value *plan)
{
    const struct pb_json_value *steps = pb_json_get(plan, "steps", NULL);
    for (size_t i = 0; i < pb_json_count(steps); i++) {
        const struct pb_json_value *step = pb_json_at(steps, i);
        char key[32];
        (void)snprintf(key, sizeof key, "step %zu", i + 1);
        cli_line(key, "%s", cli_json_text(step, "text"));
        if (cli_json_text(step, "note")[0] != '\0')
            cli_line("", "%s", cli_json_text(step, "note"));
    }
}

static void say_notes(const struct pb_json_value *plan)
{
    const struct pb_json_value *notes = pb_json_get(plan, "notes", NULL);
    for (size_t i = 0; i < pb_json_count(notes); i++)
        if (pb_json_text_of(pb_json_at(notes, i)) != NULL)
            cli_line(i == 0 ? "note" : "", "%s", pb_json_text_of(pb_json_at(notes, i)));
}

static void say_grid(const struct pb_json_value *plan)
{
    const struct pb_json_value *grid = pb_json_get(plan, "grid", NULL),
                               *transform = pb_json_get(grid, "transform", NULL);
    char text[400] = "";
    cli_add(text, sizeof text, "%s, ",
            cli_json_text(grid, "crs")[0] != '\0' ? cli_json_text(grid, "crs")
            : cli_json_is_true(grid, "has_crs")   ? "a coordinate system without a code"
                                                  : "no coordinate system");
    cli_add_size(grid, text, sizeof text);
    if (transform != NULL)
        cli_add(text, sizeof text, ", %s corner %.10g, %.10g%s",
                cli_json_at(transform, 5) < 0 ? "upper left" : "first", cli_json_at(transform, 0),
                cli_json_at(transform, 3),
                cli_json_at(transform, 2) != 0 || cli_json_at(transform, 4) != 0 ? ", rotated"
                                                                                 : "");
    else if (cli_json_number(grid, "gcps") > 0)
        cli_add(text, sizeof text, ", placed by %.0f ground control points",
                cli_json_number(grid, "gcps"));
    else if (cli_json_is_true(grid, "rpc"))
        cli_add(text, sizeof text, ", placed by RPCs");
    else
        cli_add(text, sizeof text, ", not placed on the Earth");
    cli_line("grid", "%s", text);
    if (cli_json_text(grid, "placed_by")[0] != '\0')
        cli_line("", "the scene is placed by %s", cli_json_text(grid, "placed_by"));
}

/* Prints the tiles of a grid; the lines after it describe the first planned tile. */
static void say_tiles(const struct pb_json_value *plan)
{
    const struct pb_json_value *tiles = pb_json_get(plan, "tiles", NULL);
    const char *first = "";
    size_t n = 0;
    for (size_t i = 0; i < pb_json_count(tiles); i++) {
        const struct pb_json_value *tile = pb_json_at(tiles, i),
                                   *bounds = pb_json_get(tile, "bounds", NULL);
        const bool outside = strcmp(cli_json_text(tile, "state"), "outside") == 0;
        if (!outside && n++ == 0)
            first = cli_json_text(tile, "id");
        if (outside)
            cli_line(i == 0 ? "tiles" : "", "%s: the scene does not reach it, no products",
                     cli_json_text(tile, "id"));
        else
            cli_line(i == 0 ? "tiles" : "",
                     "%s: %s, %.0f x %.0f px, upper left corner %.10g, %.10g",
                     cli_json_text(tile, "id"), cli_json_text(tile, "crs"),
                     cli_json_number(tile, "width"), cli_json_number(tile, "height"),
                     cli_json_at(bounds, 0), cli_json_at(bounds, 3));
    }
    if (n > 1)
        cli_line("",
                 "grid and products of %s follow, those of the others are alike; a tile without a "
                 "valid pixel gets no products",
                 first);
}

/* --- products --------------------------------------------------------------------------------- */

/* Appends the bands: "NDVI, EVI". */
static void add_bands(const struct pb_json_value *product, char *text, size_t n)
{
    const struct pb_json_value *bands = pb_json_get(product, "bands", NULL);
    for (size_t i = 0; i < pb_json_count(bands); i++)
        cli_add(text, n, "%s%s", i ? ", " : "", pb_json_text_of(pb_json_at(bands, i)));
}

/* Appends the format of values: ", float32, nodata nan, deflate". */
static void add_values(const struct pb_json_value *product, char *text, size_t n)
{
    const struct pb_json_value *nodata = pb_json_get(product, "nodata", NULL);
    if (cli_json_text(product, "data_type")[0] != '\0')
        cli_add(text, n, ", %s", cli_json_text(product, "data_type"));
    if (nodata != NULL && pb_json_is_plain(nodata))
        cli_add(text, n, ", nodata %.10g", cli_json_number(product, "nodata"));
    else if (nodata != NULL)
        cli_add(text, n, ", nodata %s", cli_json_text(product, "nodata"));
    if (cli_json_is_true(product, "mask"))
        cli_add(text, n, ", with a mask");
    if (cli_json_is_true(product, "alpha"))
        cli_add(text, n, ", with alpha");
    if (cli_json_text(product, "valid")[0] != '\0')
        cli_add(text, n, ", valid where %s",
                strcmp(cli_json_text(product, "valid"), "any") == 0 ? "any band is"
                                                                    : "all bands are");
    if (pb_json_get(product, "scale", NULL) != NULL)
        cli_add_scale(product, text, n);
    if (cli_json_text(product, "ramp")[0] != '\0')
        cli_add(text, n, ", colours %s", cli_json_text(product, "ramp"));
    if (cli_json_text(product, "compress")[0] != '\0')
        cli_add(text, n, ", %s", cli_json_text(product, "compress"));
    if (strcmp(cli_json_text(product, "blocks"), "copied") == 0)
        cli_add(text, n, ", blocks copied from the file");
    else if (cli_json_text(product, "blocks_why")[0] != '\0')
        cli_add(text, n, ", blocks encoded again: %s", cli_json_text(product, "blocks_why"));
}

/* Appends where the product is made. *reason: reason why an earlier product is made on the host;
 * it is printed once if it does not change. */
static void add_where(const struct pb_json_value *product, const char **reason, char *text,
                      size_t n)
{
    const char *why = cli_json_text(product, "encoded_on_why");
    if (strcmp(cli_json_text(product, "encoded_on"), "device") == 0)
        cli_add(text, n, ", made on the GPU");
    else if (why[0] != '\0' && strcmp(why, *reason) == 0)
        cli_add(text, n, ", made on the host for the same reason");
    else if (why[0] != '\0')
        cli_add(text, n, ", made on the host: %s", why);
    *reason = why[0] != '\0' ? why : *reason;
}

static void say_product(const struct pb_json_value *product, const char **reason)
{
    char text[2000] = "";
    cli_add(text, sizeof text, "%s", cli_json_text(product, "file"));
    if (pb_json_count(pb_json_get(product, "bands", NULL)) > 0)
        cli_add(text, sizeof text, ": ");
    add_bands(product, text, sizeof text);
    if (!isnan(cli_json_number(product, "width")))
        cli_add(text, sizeof text, ", %.0f x %.0f px", cli_json_number(product, "width"),
                cli_json_number(product, "height"));
    add_values(product, text, sizeof text);
    add_where(product, reason, text, sizeof text);
    if (cli_json_text(product, "collection")[0] != '\0')
        cli_add(text, sizeof text, ": of the collection %s", cli_json_text(product, "collection"));
    cli_line(cli_json_text(product, "type"), "%s", text);
}

/* Prints the directory of the products, the products that exist there and their future. */
static void say_place(const struct pb_json_value *plan)
{
    const char *there = cli_json_text(plan, "there"), *exists = cli_json_text(plan, "exists");
    char rule[100];
    (void)snprintf(rule, sizeof rule, "%s (output.exists: %s)",
                   strcmp(exists, "refuse") == 0    ? "refused"
                   : strcmp(exists, "replace") == 0 ? "replaced as well"
                                                    : "kept, and these are stored next to them",
                   exists);
    cli_line("into", "%s", cli_json_text(plan, "directory"));
    if (strcmp(there, "products") == 0)
        cli_line("", "products are there: they are replaced (output.exists: %s)", exists);
    else if (strcmp(there, "alike") == 0)
        cli_line("",
                 "products of an input that looks like this one are there: replaced when the "
                 "content is the same, else %s",
                 rule);
    else if (strcmp(there, "other pipelines") == 0)
        cli_line("", "other pipelines' products of this input are there; they stay");
}

static void say_memory(const struct pb_json_value *plan)
{
    const double mib = 1024.0 * 1024.0;
    cli_line("memory", "%.0f MiB of the %.0f of compute.memory; computed on %s",
             ceil(cli_json_number(plan, "memory_bytes") / mib),
             cli_json_number(plan, "memory_budget_bytes") / mib, cli_json_text(plan, "device"));
}

/* Prints the engines of a GPU that are not used: that of computing for all readers, the others for
 * those who tune. */
static void say_limits(const struct pb_json_value *plan, bool verbose)
{
    const struct pb_json_value *limits = pb_json_get(plan, "limits", NULL);
    for (size_t i = 0; i < pb_json_count(limits); i++) {
        const struct pb_json_value *limit = pb_json_at(limits, i);
        const char *engine = cli_json_text(limit, "engine"),
                   *remedy = cli_json_text(limit, "remedy");
        if (verbose || strcmp(engine, "computing on the GPU") == 0)
            cli_line("not used", "%s: %s%s%s", engine, cli_json_text(limit, "reason"),
                     remedy[0] != '\0' ? "; " : "", remedy);
    }
}

/* Prints the lines of a device that is not present: how tiles would be transferred to it, and
 * which device decodes. */
static void say_as(const struct pb_json_value *plan, const struct pb_json_value *schedule,
                   bool verbose)
{
    const struct pb_json_value *as = pb_json_get(plan, "as", NULL);
    cli_line("as", "%s, %s: not here, planned from its figures (%s)", cli_json_text(as, "device"),
             cli_json_text(as, "name"), cli_json_text(as, "source"));
    for (int i = 0; !verbose && i < 3; i++) {
        static const char *const keys[] = {"threads", "kernel", "codecs"};
        if (cli_json_text(schedule, keys[i])[0] != '\0')
            cli_line(keys[i], "%s", cli_json_text(schedule, keys[i]));
    }
    cli_line("decode", "%s", cli_json_text(as, "decoding"));
}

/* Prints the schedule. Complex pixels, kept digits, a gate, passes before, idle cores and a part of
 * the GPU concern all readers; the other lines only those who tune. */
static void say_schedule(const struct pb_json_value *plan, bool verbose)
{
    const struct pb_json_value *schedule = pb_json_get(plan, "schedule", NULL);
    const char *key;
    for (size_t i = 0; (key = pb_json_key(schedule, i)) != NULL; i++) {
        if (strcmp(key, "gate") == 0 || strcmp(key, "before") == 0 || strcmp(key, "pixels") == 0 ||
            strcmp(key, "digits") == 0 || strcmp(key, "idle") == 0 || strcmp(key, "share") == 0)
            cli_line(key, "%s", cli_json_text(schedule, key));
    }
    if (pb_json_get(plan, "as", NULL) != NULL)
        say_as(plan, schedule, verbose);
    if (!verbose)
        return;
    puts("");
    for (size_t i = 0; (key = pb_json_key(schedule, i)) != NULL; i++)
        cli_line(key, "%s", cli_json_text(schedule, key));
}

void cli_plan_text(const char *input, const char *pipeline, const char *why,
                   const struct pb_json_value *plan, bool verbose)
{
    const char *reason = "";
    char clean[PATH_MAX + 300];
    const struct pb_json_value *products = pb_json_get(plan, "products", NULL);
    (void)pb_text_clean(input, clean, sizeof clean);
    printf("%s%s%s\n", cli_color(stdout, CLI_BOLD), clean, cli_color(stdout, CLI_PLAIN));
    cli_line("pipeline", "%s: %s", pipeline, why);
    cli_plan_input(plan);
    cli_result_sidecars(pb_json_get(plan, "sidecars", NULL));
    cli_line("valid", "%s", cli_json_text(plan, "valid"));
    say_calibration(plan);
    say_steps(plan);
    say_notes(plan);
    say_tiles(plan);
    say_grid(plan);
    say_place(plan);
    for (size_t i = 0; i < pb_json_count(products); i++)
        say_product(pb_json_at(products, i), &reason);
    say_memory(plan);
    say_limits(plan, verbose);
    say_schedule(plan, verbose);
    (void)cli_flush();
}
