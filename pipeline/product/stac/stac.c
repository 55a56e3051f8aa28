/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A STAC 1.1.0 item of the scene's products: footprint and time, the grid (projection 2.0.0),
 * the bands (core bands, raster 2.0.0), the processing (processing 1.2.0) and checksums (file
 * 2.1.0). Unknown values are omitted; an extension is listed only if one of its fields is
 * present, as the schemas require. "created" and "updated" are the only time stamps in any
 * product. */
#include "config/pipeline_config.h"
#include "kernels/chain/chain.h"
#include "config/base/base_name.h"
#include "pipeline/product/product.h"
#include "pipeline/product/product_text.h"
#include "pipeline/product/stac/stac.h"
#include "pipeline/product/notes.h"
#include "pipeline/product/stac/stac_asset.h"
#include "pipeline/product/stac/stac_classes.h"
#include "pipeline/product/stac/stac_facts.h"
#include "pipeline/product/stac/stac_geometry.h"
#include "pipeline/product/stac/stac_lineage.h"
#include "pipeline/product/stac/stac_links.h"
#include "pipeline/product/stac/stac_processing.h"
#include "pipeline/product/stac/stac_renders.h"
#include "pipeline/raster/ground.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXTENSION "https://stac-extensions.github.io/"

struct stac {
    const struct pb_product_env *env;
    const struct pb_stac_config *config;
};

/* Bytes of a result of a reduction: its name and value, as text and as data, and its band. */
enum { RESULT_BYTES = 256 };

/* Bytes of the text: mostly the buckets of histograms, one line each. */
static uint64_t stac_bytes(const struct pb_product_env *env, const struct pb_product_config *config)
{
    uint64_t bytes = UINT64_C(256) * 1024;
    (void)config;
    for (size_t i = 0; env->pipeline != NULL && i < env->pipeline->n_products; i++) {
        const struct pb_product_config *other = env->pipeline->products[i];
        const struct pb_product_type *type = pb_product_type(other->kind);
        if (type->item_bytes != NULL)
            bytes += type->item_bytes(env, other);
    }
    struct pb_chain_use use;
    for (size_t i = 0; env->chain != NULL && pb_chain_use_at(env->chain, i, &use); i++)
        bytes += (uint64_t)RESULT_BYTES * use.n;
    return bytes;
}

/* STAC requires a time, or a start and an end; a reader must be able to distinguish the time of
 * the image from that of the file. */
static void write_datetime(struct pb_json *json, const struct pb_stac_when *when)
{
    bool is_day = when->datetime[0] == '\0';
    pb_json_string(json, "datetime", is_day ? NULL : when->datetime);
    if (is_day) {
        pb_json_string(json, "start_datetime", when->start);
        pb_json_string(json, "end_datetime", when->end);
    }
    pb_json_string(json, "pushbroom:datetime_source", when->source);
}

static void stac_explain(const struct pb_product_env *env, const struct pb_product_config *config,
                         struct pb_json *json)
{
    const struct pb_stac_config *stac = (const struct pb_stac_config *)config;
    struct pb_stac_when when;
    struct pb_err err = {0};
    if (pb_stac_when(stac, env, &when, &err) == 0)
        write_datetime(json, &when);
    pb_json_string(json, "collection", stac->collection);
}

static int stac_create(const struct pb_product_env *env, const struct pb_product_config *config,
                       struct pb_err *err, void **out_product)
{
    struct stac *stac = calloc(1, sizeof *stac);
    if (stac == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a STAC item");
    stac->env = env;
    stac->config = (const struct pb_stac_config *)config;
    *out_product = stac;
    return 0;
}

static enum pb_checksum stac_checksum(const struct pb_product_config *config,
                                      const struct pb_pipeline_config *pipeline)
{
    int32_t own = ((const struct pb_stac_config *)config)->checksum;
    return own == 0 ? pipeline->output.checksum : (enum pb_checksum)(own - 1);
}

static const char *stac_collection(const struct pb_product_config *config)
{
    return ((const struct pb_stac_config *)config)->collection;
}

static int stac_ready(const struct pb_product_env *env, const struct pb_product_config *config,
                      struct pb_err *err)
{
    struct pb_stac_when when;
    return pb_stac_when((const struct pb_stac_config *)config, env, &when, err);
}

static void stac_destroy(void *product)
{
    free(product);
}

/* --- small parts ------------------------------------------------------------------------------ */

static void time_text(time_t seconds, char *out, size_t bytes)
{
    struct tm tm;
    if (gmtime_r(&seconds, &tm) == NULL || strftime(out, bytes, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        (void)snprintf(out, bytes, "1970-01-01T00:00:00Z");
}

static bool is_extension(const struct pb_product_result *result, const char *extension)
{
    const char *own = pb_product_type(result->kind)->extension;
    return own != NULL && strcmp(own, extension) == 0;
}

/* Writes the extensions of the products' own fields, each once. */
static void write_own_extensions(const struct pb_stac_item *item)
{
    for (size_t i = 0; i < item->n_results; i++) {
        const char *extension = pb_product_type(item->results[i].kind)->extension;
        bool told = extension == NULL;
        for (size_t k = 0; k < i && !told; k++)
            told = is_extension(&item->results[k], extension);
        char url[160];
        (void)snprintf(url, sizeof url, EXTENSION "%s/schema.json", told ? "" : extension);
        if (!told)
            pb_json_string(item->json, NULL, url);
    }
}

static bool names_classes(const struct pb_stac_item *item)
{
    bool found = false;
    for (size_t i = 0; i < item->n_results && !found; i++) {
        const struct pb_product_type *type = pb_product_type(item->results[i].kind);
        found =
            type->names_classes != NULL && type->names_classes(item->env, item->results[i].config);
    }
    return found;
}

/* --- the item --------------------------------------------------------------------------------- */

static void write_software(const struct pb_stac_item *item)
{
    const char *library = pb_raster_library(), *space = strrchr(library, ' ');
    pb_json_object(item->json, "processing:software");
    pb_json_string(item->json, "pushbroom", PB_VERSION);
    if (space != NULL) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)(space - library), library);
        pb_json_string(item->json, name, space + 1);
    }
    pb_json_end(item->json);
}

/* Writes properties of the pixels that the products do not show: the conversion of complex
 * pixels, and the count of pixels with more digits than the computed values. */
static void write_pixels(struct pb_json *json, const struct pb_product_env *env)
{
    const struct pb_complex *complex = &env->info->complex;
    char text[40];
    if (complex->kind != PB_COMPLEX_NONE) {
        (void)snprintf(text, sizeof text, "%s as %s", pb_complex_name(complex->kind),
                       complex->power ? "power" : "amplitude");
        pb_json_string(json, "pushbroom:complex", text);
    }
    if (env->notes != NULL && env->notes->n > 0) {
        pb_json_array(json, "pushbroom:notes");
        for (size_t i = 0; i < env->notes->n; i++)
            pb_json_string(json, NULL, env->notes->text[i]);
        pb_json_end(json);
    }
    if (env->n_digits == 0)
        return;
    pb_json_array(json, "pushbroom:digits");
    for (size_t i = 0; i < env->n_digits; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "band", env->digits[i].band);
        pb_json_string(json, "data_type", env->digits[i].type);
        pb_json_int(json, "pixels", (int64_t)env->digits[i].pixels);
        pb_json_string(json, "are", env->digits[i].kept ? "out of range" : "rounded");
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* Returns true for a tile of a grid that the extension has a name for. */
static bool has_grid(const struct pb_stac_item *item)
{
    return item->env->tile != NULL && item->env->tile->code[0] != '\0';
}

static void write_properties(const struct pb_stac_item *item)
{
    struct pb_json *json = item->json;
    char now[32];
    time_text(time(NULL), now, sizeof now);
    pb_json_object(json, "properties");
    pb_json_string(json, "title", pb_product_base(item->env));
    write_datetime(json, &item->when);
    pb_json_string(json, "created", now);
    pb_json_string(json, "updated", now);
    if (has_grid(item))
        pb_json_string(json, "grid:code", item->env->tile->code);
    pb_stac_facts(item);
    pb_stac_code(item);
    write_software(item);
    pb_json_string(json, "pushbroom:input", pb_base_name(item->env->input));
    if (item->env->n_files > 0) {
        pb_json_array(json, "pushbroom:input_files");
        for (size_t i = 0; i < item->env->n_files; i++)
            pb_json_string(json, NULL, item->env->files[i]);
        pb_json_end(json);
    }
    pb_stac_unlinked(item);
    pb_stac_renders(item);
    write_pixels(json, item->env);
    pb_json_string(json, "processing:lineage", item->lineage);
    pb_stac_expression(json, item->env);
    pb_json_end(json);
}

static void write_extensions(const struct pb_stac_item *item)
{
    struct pb_json *json = item->json;
    pb_json_array(json, "stac_extensions");
    pb_json_string(json, NULL, EXTENSION "projection/v2.0.0/schema.json");
    write_own_extensions(item);
    if (names_classes(item))
        pb_json_string(json, NULL, EXTENSION PB_STAC_CLASSES "/schema.json");
    pb_json_string(json, NULL, EXTENSION "processing/v1.2.0/schema.json");
    if (item->n_results > 0 || pb_stac_links_inputs(item))
        pb_json_string(json, NULL, EXTENSION "file/v2.1.0/schema.json");
    if (pb_stac_has_renders(item))
        pb_json_string(json, NULL, EXTENSION "render/v2.0.0/schema.json");
    if (has_grid(item))
        pb_json_string(json, NULL, EXTENSION "grid/v1.1.0/schema.json");
    if (pb_stac_has_view(item))
        pb_json_string(json, NULL, EXTENSION "view/v1.0.0/schema.json");
    if (pb_stac_has_sat(item))
        pb_json_string(json, NULL, EXTENSION "sat/v1.1.0/schema.json");
    if (pb_stac_has_sar(item))
        pb_json_string(json, NULL, EXTENSION "sar/v1.0.0/schema.json");
    if (pb_stac_has_eo(item))
        pb_json_string(json, NULL, EXTENSION "eo/v2.0.0/schema.json");
    pb_json_end(json);
}

/* Writes an id that is unique among all items below products/, as a collection requires: one
 * scene may have an item of each pipeline, and another input with the same name has its own
 * directory. */
static void write_id(const struct pb_stac_item *item)
{
    const struct pb_product_env *env = item->env;
    char id[PB_OUTPUT_PATH_BYTES + 400];
    (void)snprintf(id, sizeof id, "%s.%s%s%s", env->place ? env->place : env->scene,
                   env->pipeline->name, env->tile != NULL ? "." : "",
                   env->tile != NULL ? env->tile->id : "");
    for (char *slash = id; (slash = strchr(slash, '/')) != NULL;)
        *slash = '.';
    pb_json_string(item->json, "id", id);
}

/* Returns the raster with the products' georeferencing. */
static struct pb_raster *place_of(const struct pb_product_env *env)
{
    return env->placed != NULL ? env->placed : env->raster;
}

static int write_item(const struct pb_stac_item *item, struct pb_err *err)
{
    struct pb_footprint footprint;
    struct pb_raster *place = place_of(item->env);
    bool placed = pb_raster_footprint(place, &item->env->geometry, &footprint) == 0;
    if (placed)
        pb_raster_footprint_defined(place, &footprint);
    pb_json_object(item->json, NULL);
    pb_json_string(item->json, "type", "Feature");
    pb_json_string(item->json, "stac_version", "1.1.0");
    write_extensions(item);
    write_id(item);
    if (item->config->collection != NULL)
        pb_json_string(item->json, "collection", item->config->collection);
    pb_stac_geometry(item->json, placed ? &footprint : NULL);
    write_properties(item);
    pb_stac_links(item);
    pb_json_object(item->json, "assets");
    for (size_t i = 0; i < item->n_results; i++) {
        int rc = pb_stac_asset(item, i, err);
        if (rc < 0)
            return rc;
    }
    pb_json_end(item->json);
    pb_json_end(item->json);
    return 0;
}

static int write_file(const struct pb_stac_item *item, struct pb_err *err,
                      struct pb_product_result *out)
{
    if (item->lineage == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to write the STAC item");
    int rc = write_item(item, err);
    return rc < 0 ? rc : pb_product_text(item->env, item->json, err, out);
}

static int stac_finish(void *product, const struct pb_product_result *earlier, size_t n_earlier,
                       struct pb_err *err, struct pb_product_result *out_result)
{
    const struct stac *stac = product;
    struct pb_product_result result = {
        .kind = &pb_kind_stac,
        .name = stac->config->product.name,
        .media_type = "application/geo+json",
        .config = &stac->config->product,
    };
    pb_product_file(stac->env, &stac->config->product, result.file, sizeof result.file);
    struct pb_stac_item item = {
        .env = stac->env,
        .config = stac->config,
        .results = earlier,
        .n_results = n_earlier,
        .json = pb_json_create(true),
        .wkt2 = pb_raster_wkt2(place_of(stac->env)),
        .projjson = pb_raster_projjson(place_of(stac->env)),
    };
    const struct pb_product_env *env = stac->env;
    int rc = pb_stac_when(stac->config, env, &item.when, err);
    if (rc == 0 && env->inputs != NULL)
        rc = env->inputs(env->inputs_user, err, &item.inputs);
    item.lineage = rc == 0 ? pb_stac_lineage(env, item.inputs) : NULL;
    rc = rc ? rc : write_file(&item, err, &result);
    pb_json_destroy(item.json);
    free(item.lineage);
    free(item.wkt2);
    free(item.projjson);
    if (rc == 0)
        *out_result = result;
    return rc;
}

static bool stac_time(const struct pb_product_env *env, const struct pb_product_config *config,
                      char *out)
{
    struct pb_stac_when when;
    struct pb_err err = {0};
    const int rc = pb_stac_when((const struct pb_stac_config *)config, env, &when, &err);
    if (rc == 0)
        (void)snprintf(out, sizeof when.start, "%s", when.datetime[0] ? when.datetime : when.start);
    return rc == 0;
}

const struct pb_product_type pb_product_stac = {
    .kind = &pb_kind_stac,
    .suffix = ".stac.json",
    .asset = "stac",
    .title = "Item",
    .role = "metadata",
    .bytes = stac_bytes,
    .collection = stac_collection,
    .time = stac_time,
    .checksum = stac_checksum,
    .ready = stac_ready,
    .explain = stac_explain,
    .create = stac_create,
    .finish = stac_finish,
    .destroy = stac_destroy,
};
