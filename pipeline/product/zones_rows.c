/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/zones_rows.h"

#include "kernels/reduce/statistics_key.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The values of a band in a zone. */
struct values {
    const struct pb_float_sums *sums;
    const struct pb_value_count *entry; /* n; NULL = not counted, or none is valid */
    size_t n;
    uint32_t level;
    double mean, std, sum, error;
};

static void add_column(struct pb_table *table, const char *band, const char *what,
                       enum pb_cell_kind kind)
{
    char name[160];
    (void)snprintf(name, sizeof name, "%.80s_%.60s", band, what);
    pb_table_column(table, name, kind);
}

static bool is_count(enum pb_zones_stat_kind kind)
{
    return kind == PB_ZONES_VALID || kind == PB_ZONES_VARIETY;
}

static void add_columns(struct pb_table *table, const struct pb_zones_config *config,
                        const struct pb_zones_names *names)
{
    const char *by = config->by.items[0].text;
    pb_table_column(table, by, PB_CELL_REAL);
    if (config->classes.n > 0)
        add_column(table, by, "name", PB_CELL_TEXT);
    pb_table_column(table, "pixels", PB_CELL_INT);
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

/* What is found in the counts of values; only these are wrong by an error. */
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

static void add_band(struct pb_table *table, const struct pb_zones_config *config,
                     const struct pb_zones_all *all, uint32_t i, uint32_t band)
{
    const struct pb_zone *zone = pb_zone_sums_zone(pb_zones_sums(all), i);
    struct values v = {.sums = pb_zone_sums_band(pb_zones_sums(all), i, band),
                       .mean = (double)NAN,
                       .std = (double)NAN};
    if (v.sums->n > 0)
        pb_float_sums_result(v.sums, &v.mean, &v.std, &v.sum);
    if (config->counts_values) {
        const struct pb_value_counts *counts = pb_zones_counts(all, band);
        v.entry = pb_value_counts_of(counts, zone->key, &v.n);
        v.level = pb_value_counts_level(counts);
    }
    for (size_t s = 0; s < config->n_stats; s++)
        add_stat(table, &config->stat[s], &v, zone->pixels);
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

static void add_row(struct pb_table *table, const struct pb_zones_config *config,
                    const struct pb_zones_names *names, const struct pb_zones_all *all, uint32_t i)
{
    const struct pb_zone *zone = pb_zone_sums_zone(pb_zones_sums(all), i);
    const float value = pb_statistics_value((uint32_t)zone->key);
    const double m2 = names->pixel_m2 != 0 ? (double)zone->pixels * names->pixel_m2
                                           : (double)zone->area * names->unit_m2;
    pb_table_row(table);
    pb_table_float(table, value);
    if (config->classes.n > 0)
        pb_table_text(table, name_of(&config->classes, (double)value));
    pb_table_int(table, (int64_t)zone->pixels);
    pb_table_real(table, m2);
    pb_table_real(table, m2 / 10000);
    for (uint32_t b = 0; b < names->n_bands; b++)
        add_band(table, config, all, i, b);
}

struct place {
    uint64_t key;
    uint32_t i;
};

static int by_key(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

struct pb_table *pb_zones_table(const struct pb_zones_config *config,
                                const struct pb_zones_names *names, const struct pb_zones_all *all)
{
    const struct pb_zone_sums *sums = pb_zones_sums(all);
    const uint32_t n = pb_zone_sums_count(sums);
    struct place *order = calloc(n + 1, sizeof *order);
    struct pb_table *table = order != NULL ? pb_table_create() : NULL;
    add_columns(table, config, names);
    for (uint32_t i = 0; order != NULL && i < n; i++)
        order[i] = (struct place){pb_zone_sums_zone(sums, i)->key, i};
    if (order != NULL)
        qsort(order, n, sizeof *order, by_key);
    for (uint32_t i = 0; order != NULL && i < n; i++)
        add_row(table, config, names, all, order[i].i);
    free(order);
    if (!pb_table_failed(table))
        return table;
    pb_table_destroy(table);
    return NULL;
}
