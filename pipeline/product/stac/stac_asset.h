/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_ASSET_H
#define PB_STAC_ASSET_H
/* Assets of a STAC item: one for every product made before, with its grid, its bands and the
 * checksum of its file. */
#include "config/base/json_writer.h"
#include "pipeline/paint/paint_config.h"
#include "pipeline/product/product.h"
#include "pipeline/product/stac/stac_time.h"

struct pb_stac_classes;
struct pb_stac_config;

/* Data from which finish() writes. */
struct pb_stac_item {
    const struct pb_product_env *env;
    const struct pb_stac_config *config;
    const struct pb_product_result *results;
    size_t n_results;
    const struct pb_scene_manifest *inputs; /* files that were read; NULL = not known */
    struct pb_stac_when when;
    struct pb_json *json;
    char *lineage, *wkt2, *projjson; /* owned; the last two may be NULL */
};

/* Key of asset i: the product's name, else the asset name of its kind; a second asset with a key
 * gets "-2". */
void pb_stac_asset_key(const struct pb_stac_item *item, size_t i, char *out, size_t bytes);
/* Writes asset i of the item's results under its key. 0 or a negative errno with *err. */
int pb_stac_asset(const struct pb_stac_item *item, size_t i, struct pb_err *err);
/* Writes "proj:code": the scene's code, null if it has no code. */
void pb_stac_code(const struct pb_stac_item *item);
/* Members of the asset of a product on the scene's grid: its georeference, and its bands. config:
 * selects the bands. 0 or a negative errno with *err. */
struct pb_stac_pixels {
    enum pb_type type;
    bool has_nodata;
    double nodata;
    bool has_mask;                         /* used instead of nodata */
    const struct pb_band_facts *facts;     /* facts of each band; borrowed */
    const struct pb_stac_classes *classes; /* classes of the one band; NULL = no classes */
};
int pb_stac_raster(const struct pb_stac_item *item, const struct pb_product_config *config,
                   const struct pb_stac_pixels *pixels, struct pb_err *err);
/* The same for a picture on that grid, whose bands are levels or colours: n names. */
void pb_stac_levels(const struct pb_stac_item *item, const char *const *names, size_t n,
                    const struct pb_stac_pixels *pixels);
/* The same for a picture without a georeference: its size. */
void pb_stac_picture(const struct pb_stac_item *item, int32_t width, int32_t height);
/* Writes the legend of a picture: its ramp, or the lines of its colour file, and its ends.
 * Writes nothing without a ramp. */
void pb_stac_legend(const struct pb_stac_item *item, const struct pb_paint_config *paint);
#endif
