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
    request.stamp = z->polygons->stamp;
    int rc = pb_vector_table(&request, &rows, err, &file, &bytes);
    const char *const parts[1] = {file};
    if (rc == 0)
        rc = pb_product_write(z->env, parts, &bytes, 1, err, out);
    free(file);
    return rc;
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
