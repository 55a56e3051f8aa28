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
    int32_t size[2];
    struct pb_polygons *polygons; /* in pixels; NULL = zones are classes only */
    struct pb_polygon_scan *scan;
    char *scratch; /* memory of each worker: zones of a tile, then the scratch of the scan */
    size_t scratch_bytes, tile_bytes;
};

/* Bytes of the file of polygons; 0: absent, or unreadable, which is reported later. */
uint64_t pb_zones_file_bytes(const struct pb_zones_config *config);
/* Upper bound of the memory of polygons and their scan: from the size of the file, which the
 * plan does not read. */
uint64_t pb_zones_polygon_bytes(const struct pb_zones_config *config);
/* Reads the polygons, in pixels, and makes the scan of them. */
int pb_zones_read_polygons(struct zones *z, struct pb_err *err);
/* Checks that the polygons can be read, and have the configured fields. */
int pb_zones_try_polygons(const struct pb_product_env *env, const struct pb_zones_config *config,
                          struct pb_err *err);
struct pb_vector_request pb_zones_request(const struct pb_zones_config *config);

/* Writes the table in the configured format; polygon: of each row. */
int pb_zones_write(struct zones *z, struct pb_err *err, struct pb_product_result *out);
#endif
