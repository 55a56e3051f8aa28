/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/zones/zones_rows.h"

#include "kernels/reduce/statistics_key.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Values of a band in a zone. */
struct values {
    const struct pb_float_sums *sums;
    const struct pb_value_count *entry; /* n entries; NULL = not counted, or no valid value */
    size_t n;
    uint32_t level;
    double mean, std, sum, error;
};

/* Row of the table: key of its zone, and its index in the sums, -1 = no pixel is in it. */
struct place {
    uint64_t key, pixels;
    int32_t i;
};

static void add_column(struct pb_table *table, const char *band, const char *what,
                       enum pb_cell_kind kind)
{
    char name[PB_ZONES_COLUMN_BYTES];
    (void)snprintf(name, sizeof name, "%.80s_%.60s", band, what);
    pb_table_column(table, name, kind);
}

static bool is_count(enum pb_zones_stat_kind kind)
{
    return kind == PB_ZONES_VALID || kind == PB_ZONES_VARIETY;
}

/* Whole numbers, numbers, or text. */
static enum pb_cell_kind kind_of(const struct pb_polygons *polygons, size_t field)
{
    enum pb_cell_kind kind = PB_CELL_INT;
    for (size_t i = 0; polygons != NULL && i < polygons->n; i++) {
        const struct pb_polygon_value *value = &polygons->polygon[i].values[field];
        if (value->text != NULL && isnan(value->num))
            return PB_CELL_TEXT;
        if (value->text != NULL && !value->is_whole)
            kind = PB_CELL_REAL;
    }
    return kind;
}

static void add_columns(struct pb_table *table, const struct pb_zones_config *config,
                        const struct pb_zones_names *names)
{
    const char *by = config->by.n > 0 ? config->by.items[0].text : NULL;
    if (names->scene != NULL) {
        pb_table_column(table, "scene", PB_CELL_TEXT);
        pb_table_column(table, "datetime", PB_CELL_TEXT);
    }
    for (size_t i = 0; i < config->n_fields; i++)
        pb_table_column(table, config->field[i], kind_of(names->polygons, i));
    if (by != NULL)
        pb_table_column(table, by, PB_CELL_REAL);
    if (config->classes.n > 0)
        add_column(table, by, "name", PB_CELL_TEXT);
    pb_table_column(table, "pixels", PB_CELL_INT);
    if (config->n_fields > 0)
        pb_table_column(table, "cut", PB_CELL_INT);
    pb_table_column(table, "area_m2", PB_CELL_REAL);
    pb_table_column(table, "area_ha", PB_CELL_REAL);
    for (size_t b = 0; b < names->n_bands; b++) {
        for (size_t s = 0; s < config->n_stats; s++)
            add_column(table, names->bands[b], config->stat[s].name,
                       is_count(config->stat[s].kind) ? PB_CELL_INT : PB_CELL_REAL);
        if (config->counts_values)
            add_column(table, names->bands[b], "error", PB_CELL_REAL);
    }
}

/* Returns true if the name is used: a GeoPackage has two columns of its own. */
static bool is_taken(const struct pb_table *table, size_t column, bool has_outlines)
{
    const char *name = pb_table_column_at(table, column)->name;
    bool taken =
        has_outlines && (strcasecmp(name, "feature_id") == 0 || strcasecmp(name, "geom") == 0);
    for (size_t i = 0; i < column && !taken; i++)
        taken = strcasecmp(pb_table_column_at(table, i)->name, name) == 0;
    return taken;
}

bool pb_zones_columns_differ(const struct pb_zones_config *config, const char *const *bands,
                             size_t n_bands, char out_name[PB_ZONES_COLUMN_BYTES])
{
    const struct pb_zones_names names = {
        .bands = bands, .n_bands = n_bands, .scene = config->append, .datetime = config->append};
    struct pb_table *table = pb_table_create();
    bool differ = true;
    add_columns(table, config, &names);
    for (size_t i = 0; !pb_table_failed(table) && differ && i < pb_table_columns(table); i++) {
        differ = !is_taken(table, i, config->format == PB_ZONES_GPKG);
        if (!differ)
            (void)snprintf(out_name, PB_ZONES_COLUMN_BYTES, "%s",
                           pb_table_column_at(table, i)->name);
    }
    pb_table_destroy(table);
    return differ;
}

/* Adds a statistic computed from the counts of values; only these have an error. */
static void add_counted(struct pb_table *table, const struct pb_zones_stat *stat, struct values *v)
{
    const struct pb_value_count *one;
    const bool has_values = v->entry != NULL && v->level == 0;
    double error = 0;
    switch (stat->kind) {
    case PB_ZONES_PERCENTILE:
        if (v->entry != NULL)
            pb_table_real(table, pb_value_percentile(v->entry, v->n, v->level, stat->p, &v->error));
        else
            pb_table_null(table);
        break;
    case PB_ZONES_VARIETY:
        if (v->sums->n == 0 || has_values)
            pb_table_int(table, (int64_t)v->n);
        else
            pb_table_null(table);
        break;
    default:
        if (!has_values) {
            pb_table_null(table);
            break;
        }
        one = stat->kind == PB_ZONES_MAJORITY ? pb_value_majority(v->entry, v->n)
                                              : pb_value_minority(v->entry, v->n);
        pb_table_float(table, (float)pb_value_of_key(one->key, 0, &error));
    }
}

static void add_stat(struct pb_table *table, const struct pb_zones_stat *stat, struct values *v,
                     uint64_t pixels)
{
    const struct pb_float_sums *sums = v->sums;
    const bool is_empty = sums->n == 0;
    switch (stat->kind) {
    case PB_ZONES_VALID:
        pb_table_int(table, (int64_t)sums->n);
        break;
    case PB_ZONES_VALID_PERCENT:
        pb_table_real(table, pixels > 0 ? 100.0 * (double)sums->n / (double)pixels : (double)NAN);
        break;
    case PB_ZONES_MIN:
        pb_table_float(table, is_empty ? NAN : sums->min);
        break;
    case PB_ZONES_MAX:
        pb_table_float(table, is_empty ? NAN : sums->max);
        break;
    case PB_ZONES_RANGE:
        pb_table_real(table, is_empty ? (double)NAN : (double)sums->max - (double)sums->min);
        break;
    case PB_ZONES_MEAN:
        pb_table_real(table, v->mean);
        break;
    case PB_ZONES_STD:
        pb_table_real(table, v->std);
        break;
    case PB_ZONES_SUM:
        pb_table_real(table, v->sum);
        break;
    default:
        add_counted(table, stat, v);
    }
}

/* sums of a zone without pixels */
static const struct pb_float_sums no_sums;

static void add_band(struct pb_table *table, const struct pb_zones_config *config,
                     const struct pb_zones_all *all, const struct place *place, uint32_t band)
{
    struct values v = {.sums = &no_sums, .mean = (double)NAN, .std = (double)NAN};
    if (place->i >= 0)
        v.sums = pb_zone_sums_band(pb_zones_sums(all), (uint32_t)place->i, band);
    if (v.sums->n > 0)
        pb_float_sums_result(v.sums, &v.mean, &v.std, &v.sum);
    if (config->counts_values) {
        const struct pb_value_counts *counts = pb_zones_counts(all, band);
        v.entry = pb_value_counts_of(counts, place->key, &v.n);
        v.level = pb_value_counts_level(counts);
    }
    for (size_t s = 0; s < config->n_stats; s++)
        add_stat(table, &config->stat[s], &v, place->pixels);
    if (config->counts_values)
        pb_table_real(table, v.sums->n > 0 ? v.error : (double)NAN);
}

static const char *name_of(const struct pb_items *classes, double value)
{
    for (size_t i = 0; i < classes->n; i++)
        if (classes->items[i].num == value)
            return classes->items[i].key;
    return NULL;
}

static void add_field(struct pb_table *table, const struct pb_polygon_value *value,
                      enum pb_cell_kind kind)
{
    if (value->text == NULL)
        pb_table_null(table);
    else if (kind == PB_CELL_INT)
        pb_table_int(table, value->whole);
    else if (kind == PB_CELL_REAL)
        pb_table_real(table, value->num);
    else
        pb_table_text(table, value->text);
}

static void add_row(struct pb_table *table, const struct pb_zones_config *config,
                    const struct pb_zones_names *names, const struct pb_zones_all *all,
                    const struct place *place)
{
    const struct pb_zone *zone =
        place->i >= 0 ? pb_zone_sums_zone(pb_zones_sums(all), (uint32_t)place->i) : NULL;
    const float value = pb_statistics_value((uint32_t)place->key);
    const double m2 = names->pixel_m2 != 0 ? (double)place->pixels * names->pixel_m2
                      : zone != NULL       ? (double)zone->area * names->unit_m2
                                           : 0;
    const size_t before = names->scene != NULL ? 2 : 0;
    pb_table_row(table);
    if (names->scene != NULL) {
        pb_table_text(table, names->scene);
        pb_table_text(table, names->datetime);
    }
    for (size_t i = 0; names->polygons != NULL && i < config->n_fields; i++)
        add_field(table, &names->polygons->polygon[(place->key >> 32) - 1].values[i],
                  pb_table_column_at(table, before + i)->kind);
    if (config->by.n > 0)
        pb_table_float(table, value);
    if (config->classes.n > 0)
        pb_table_text(table, name_of(&config->classes, (double)value));
    pb_table_int(table, (int64_t)place->pixels);
    if (config->n_fields > 0)
        pb_table_int(table, names->polygons->polygon[(place->key >> 32) - 1].is_beyond);
    pb_table_real(table, m2);
    pb_table_real(table, m2 / 10000);
    for (uint32_t b = 0; b < names->n_bands; b++)
        add_band(table, config, all, place, b);
}

static int by_key(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Lists all rows in their order; NULL = out of memory. */
static struct place *order_of(const struct pb_zones_config *config,
                              const struct pb_zones_names *names, const struct pb_zones_all *all,
                              size_t *out_n)
{
    const struct pb_zone_sums *sums = pb_zones_sums(all);
    const size_t n = pb_zone_sums_count(sums);
    const size_t n_polygons = names->polygons != NULL && config->by.n == 0 ? names->polygons->n : 0;
    struct place *order = calloc(n + n_polygons + 1, sizeof *order);
    size_t used = 0, own = n;
    for (size_t i = 0; order != NULL && i < n; i++) {
        const struct pb_zone *zone = pb_zone_sums_zone(sums, (uint32_t)i);
        order[i] = (struct place){zone->key, zone->pixels, (int32_t)i};
    }
    if (order == NULL)
        return NULL;
    qsort(order, n, sizeof *order, by_key);
    for (size_t p = 0; p < n_polygons; p++) { /* polygons without pixels */
        const uint64_t key = pb_zones_key((uint32_t)p + 1, 0);
        while (used < n && order[used].key < key)
            used++;
        if (used == n || order[used].key != key)
            order[own++] = (struct place){key, 0, -1};
    }
    qsort(order, own, sizeof *order, by_key);
    *out_n = own;
    return order;
}

uint64_t pb_zones_table_bytes(uint64_t rows, size_t columns)
{
    enum { TEXT_BYTES = 32 }; /* the least that an allocation of a text takes */
    return rows * (2 * sizeof(struct place) + sizeof(uint32_t) +
                   columns * (sizeof(struct pb_cell) + TEXT_BYTES));
}

struct pb_table *pb_zones_table(const struct pb_zones_config *config,
                                const struct pb_zones_names *names, const struct pb_zones_all *all,
                                uint32_t **out_polygon)
{
    size_t n = 0;
    struct place *order = order_of(config, names, all, &n);
    uint32_t *polygon = calloc(n + 1, sizeof *polygon);
    struct pb_table *table = order != NULL && polygon != NULL ? pb_table_create() : NULL;
    if (table != NULL)
        add_columns(table, config, names);
    for (size_t i = 0; table != NULL && i < n; i++) {
        add_row(table, config, names, all, &order[i]);
        polygon[i] = (uint32_t)(order[i].key >> 32) - 1;
    }
    free(order);
    if (!pb_table_failed(table)) {
        *out_polygon = polygon;
        return table;
    }
    free(polygon);
    pb_table_destroy(table);
    return NULL;
}
