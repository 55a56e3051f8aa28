/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ZONES_INSIDE_H
#define PB_ZONES_INSIDE_H
/* State shared by the files of the product: the sums while tiles arrive (zones.c), polygons and
 * their scan (zones_polygons.c), the file (zones_write.c). */
#include "pipeline/gdal/vector_table.h"
#include "pipeline/product/product.h"
#include "pipeline/product/zones/zones.h"
#include "pipeline/product/zones/zones_rows.h"
#include "pipeline/raster/polygon_scan.h"

/* Polygons of a file on the products' grid: read before the plan, and shared by the products that
 * use the same ones. Read-only after pb_zones_prepare. */
struct pb_zones_polygons {
    uint32_t users;               /* products */
    size_t owner;                 /* number of the product that has read them */
    struct pb_polygons *polygons; /* without vertices; is_beyond: they reach beyond the image */
    struct pb_polygon_scan *scan;
    uint64_t bytes, peak_bytes; /* bytes of both in memory, and most bytes while they were made */
};

struct zones {
    const struct pb_product_env *env;
    const struct pb_zones_config *config;
    uint32_t n_bands; /* with statistics */
    uint32_t plane[PB_BANDS_MAX], by;
    const char *name[PB_BANDS_MAX];
    uint32_t most; /* zones */
    struct pb_zones_all *all;
    int64_t *area; /* area of a pixel, by row; NULL = all are equal */
    struct pb_zones_names names;
    char datetime[40];
    const struct pb_zones_polygons *of; /* borrowed; NULL = zones are classes only */
    char *scratch; /* memory of each worker: zones of a tile, then the scratch of the scan */
    size_t scratch_bytes, tile_bytes;
};

/* Reads the polygons and makes the scan of them, or shares those of an earlier product: prepare
 * and discard of the product. */
int pb_zones_prepare(const struct pb_product_env *env, const struct pb_product_config *config,
                     struct pb_err *err, void **out_prepared);
void pb_zones_discard(void *prepared);
struct pb_vector_request pb_zones_request(const struct pb_zones_config *config);

/* Writes the table in the configured format; polygon: of each row. */
int pb_zones_write(struct zones *z, struct pb_err *err, struct pb_product_result *out);
/* Upper bound of the memory for that, with `rows` rows. of: NULL = zones are classes only. */
uint64_t pb_zones_write_bytes(const struct pb_product_env *env,
                              const struct pb_zones_config *config,
                              const struct pb_zones_polygons *of, uint64_t rows);
#endif
