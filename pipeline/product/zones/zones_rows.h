/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_ZONES_ROWS_H
#define PB_PRODUCT_ZONES_ROWS_H
/* Table of zones: a row each, in the order of their classes. */
#include "pipeline/numbers/table.h"
#include "pipeline/numbers/zones_all.h"
#include "pipeline/product/zones/zones.h"
#include "pipeline/raster/polygons.h"

struct pb_zones_names {
    const char *const *bands; /* n_bands, those with statistics */
    size_t n_bands;
    double pixel_m2; /* area of every pixel; 0 = the sums have areas, in units of unit_m2; NaN =
                        unknown */
    double unit_m2;
    const char *scene, *datetime; /* columns of every row; NULL = absent */
    /* NULL = zones are classes only; is_beyond: the polygon reaches beyond the image */
    const struct pb_polygons *polygons;
};

/* Key of a zone in the sums: its polygon, from 1, or 0 if zones are classes only; and its class
 * (pb_statistics_key), or 0 if they are polygons only. */
static inline uint64_t pb_zones_key(uint32_t polygon, uint32_t class)
{
    return (uint64_t)polygon << 32 | class;
}

/* Returns true if the names of the table's columns differ, case aside, with those bands; in a
 * GeoPackage also from its own columns, feature_id and geom. *out_name: the repeated name.
 * Thread: any. */
#define PB_ZONES_COLUMN_BYTES 160
bool pb_zones_columns_differ(const struct pb_zones_config *config, const char *const *bands,
                             size_t n_bands, char out_name[PB_ZONES_COLUMN_BYTES]);

/* Length of the longest name of a column that no key names. */
#define PB_ZONES_FIXED_BYTES 8
/* Upper bound of the bytes of a table, and of making it, without the texts. */
uint64_t pb_zones_table_bytes(uint64_t rows, size_t columns);
/* Makes the table after pb_zones_end: rows in the order of polygons, then of classes; a polygon
 * has a row even without a pixel, unless there are classes. *out_polygon: the index of each
 * row's polygon, from 0, malloc'd, the caller's. NULL = out of memory. */
struct pb_table *pb_zones_table(const struct pb_zones_config *config,
                                const struct pb_zones_names *names, const struct pb_zones_all *all,
                                uint32_t **out_polygon);
#endif
