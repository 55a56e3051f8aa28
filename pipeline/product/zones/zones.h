/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_ZONES_H
#define PB_PRODUCT_ZONES_H
/* Configuration of numbers by zone; zones_keys.c has the keys. */
#include "config/product_config.h"

/* Order of the choices of the key format. */
enum pb_zones_format { PB_ZONES_CSV, PB_ZONES_JSON, PB_ZONES_GEOJSON, PB_ZONES_GPKG };

enum pb_zones_stat_kind {
    PB_ZONES_VALID,
    PB_ZONES_VALID_PERCENT,
    PB_ZONES_MIN,
    PB_ZONES_MAX,
    PB_ZONES_RANGE,
    PB_ZONES_MEAN,
    PB_ZONES_STD,
    PB_ZONES_SUM,
    PB_ZONES_MAJORITY, /* this and all below are computed from the counts of values */
    PB_ZONES_MINORITY,
    PB_ZONES_VARIETY,
    PB_ZONES_PERCENTILE
};

struct pb_zones_stat {
    enum pb_zones_stat_kind kind;
    double p;         /* PERCENTILE: 0 .. 100 */
    const char *name; /* as written: "p95" */
};

struct pb_zones_config {
    struct pb_product_config product; /* its bands are those of the key, followed by that of `by` */
    struct pb_items by, stats, classes;
    char *append;
    char *zones, *layer, *id; /* the vector file, one of its layers, and a field; NULL = absent */
    struct pb_items attributes;
    int32_t touched;
    enum pb_zones_format format;

    /* Values derived from the keys. */
    const char *path;   /* path of the vector file; NULL = absent */
    const char **field; /* n_fields: its id, then the attributes */
    size_t n_fields;
    struct pb_zones_stat *stat; /* n_stats */
    size_t n_stats;
    bool counts_values; /* one of the statistics needs the counts of values */
};
#endif
