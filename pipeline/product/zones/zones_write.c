/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* File of a product of zones: CSV, JSON, or the polygons with their numbers. */
#include "pipeline/product/product_text.h"
#include "pipeline/product/zones/zones_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fills the columns of a series: the scene, and its acquisition time if known. */
static void name_scene(struct zones *z)
{
    const struct pb_product_env *env = z->env;
    if (z->config->append == NULL)
        return;
    pb_product_datetime(env, z->datetime);
    if (z->datetime[0] == '\0')
        (void)snprintf(z->datetime, sizeof z->datetime, "%s", env->info->datetime);
    z->names.scene = pb_product_base(env);
    z->names.datetime = z->datetime[0] != '\0' ? z->datetime : NULL;
}

static int write_json(const struct zones *z, const struct pb_table *table, struct pb_err *err,
                      struct pb_product_result *out)
{
    const char *slash = strrchr(z->env->input, '/');
    struct pb_json *json = pb_json_create(true);
    pb_json_object(json, NULL);
    pb_json_string(json, "scene", pb_product_base(z->env));
    pb_json_string(json, "input", slash ? slash + 1 : z->env->input);
    pb_json_array(json, "zones");
    for (size_t row = 0; row < pb_table_rows(table); row++) {
        pb_json_object(json, NULL);
        pb_table_json_row(table, json, row);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
    int rc = pb_product_text(z->env, json, err, out);
    pb_json_destroy(json);
    return rc;
}

static int write_csv(const struct zones *z, const struct pb_table *table, struct pb_err *err,
                     struct pb_product_result *out)
{
    size_t bytes[2] = {0, 0};
    char *const text[2] = {pb_table_csv_header(table, &bytes[0]),
                           pb_table_csv_rows(table, &bytes[1])};
    const char *const parts[2] = {text[0], text[1]};
    int rc = pb_product_write(z->env, parts, bytes, 2, err, out);
    free(text[0]);
    free(text[1]);
    return rc;
}

static int write_vector(const struct zones *z, const struct pb_table *table,
                        const uint32_t *polygon, struct pb_err *err, struct pb_product_result *out)
{
    struct pb_vector_request request = pb_zones_request(z->config);
    const struct pb_vector_rows rows = {
        .table = table,
        .feature = polygon,
        .name = "zones",
        .format = z->config->format == PB_ZONES_GEOJSON ? PB_VECTOR_GEOJSON : PB_VECTOR_GPKG};
    char *file = NULL;
    size_t bytes = 0;
    request.stamp = z->of->polygons->stamp;
    int rc = pb_vector_table(&request, &rows, err, &file, &bytes);
    const char *const parts[1] = {file};
    if (rc == 0)
        rc = pb_product_write(z->env, parts, &bytes, 1, err, out);
    free(file);
    return rc;
}

/* Bytes of a row's names in a format that repeats them, with a value of at most NUMBER_BYTES. */
enum { NUMBER_BYTES = 32 };

static uint64_t named_row_bytes(const struct pb_product_env *env,
                                const struct pb_zones_config *config, size_t *out_columns)
{
    const size_t bands = pb_product_band_count(env, &config->product);
    size_t n = 6, names = n * PB_ZONES_FIXED_BYTES;
    for (size_t i = 0; i < config->n_fields; i++, n++)
        names += strlen(config->field[i]);
    for (size_t b = 0; b < bands; b++) {
        const size_t band = strlen(pb_product_band_name(env, &config->product, b));
        for (size_t s = 0; s <= config->n_stats; s++, n++) /* the last one is the error */
            names += band + (s < config->n_stats ? strlen(config->stat[s].name) : 5) + 1;
    }
    *out_columns = n;
    return names + n * (NUMBER_BYTES + sizeof "        \"\": ,");
}

/* Bytes of a vector file with the outlines of `rows` rows, and of its making: the source is in
 * memory again, and the file twice at the end. */
static uint64_t vector_bytes(const struct pb_zones_config *config,
                             const struct pb_zones_polygons *of, uint64_t rows, uint64_t cells)
{
    /* A vertex of 16 bytes becomes at most 48 characters; a feature has its frame, a header and an
     * entry of the index; GDAL's files in memory grow by a tenth. */
    enum { VERTEX_GROWTH = 3, FEATURE_BYTES = 256 };
    const struct pb_polygons *polygons = of->polygons;
    const uint64_t repeats = polygons->n > 0 ? (rows + polygons->n - 1) / polygons->n : 0;
    const uint64_t shapes =
        repeats * polygons->wkb_bytes * (config->format == PB_ZONES_GEOJSON ? VERTEX_GROWTH : 1);
    return polygons->file_bytes + (shapes + rows * FEATURE_BYTES + cells) * 21 / 10;
}

uint64_t pb_zones_write_bytes(const struct pb_product_env *env,
                              const struct pb_zones_config *config,
                              const struct pb_zones_polygons *of, uint64_t rows)
{
    size_t columns;
    const uint64_t named = rows * named_row_bytes(env, config, &columns);
    const uint64_t n = of != NULL && of->polygons->n > 0 ? of->polygons->n : 1;
    const uint64_t texts = of != NULL ? of->polygons->memory_bytes * ((rows + n - 1) / n) : 0;
    const uint64_t table = pb_zones_table_bytes(rows, columns) + texts;
    if (config->format == PB_ZONES_CSV)
        return table + texts + rows * columns * NUMBER_BYTES;
    if (config->format == PB_ZONES_JSON || of == NULL)
        return table + texts + named;
    return table + vector_bytes(config, of, rows, texts + named);
}

static const char *const media_types[] = {[PB_ZONES_CSV] = "text/csv",
                                          [PB_ZONES_JSON] = "application/json",
                                          [PB_ZONES_GEOJSON] = "application/geo+json",
                                          [PB_ZONES_GPKG] = "application/geopackage+sqlite3"};

int pb_zones_write(struct zones *z, struct pb_err *err, struct pb_product_result *out)
{
    uint32_t *polygon = NULL;
    name_scene(z);
    struct pb_table *table = pb_zones_table(z->config, &z->names, z->all, &polygon);
    if (table == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the table of zones");
    out->media_type = media_types[z->config->format];
    int rc = z->config->format == PB_ZONES_CSV    ? write_csv(z, table, err, out)
             : z->config->format == PB_ZONES_JSON ? write_json(z, table, err, out)
                                                  : write_vector(z, table, polygon, err, out);
    free(polygon);
    pb_table_destroy(table);
    return rc;
}
