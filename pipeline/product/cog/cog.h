/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_COG_H
#define PB_PRODUCT_COG_H
/* The configuration of a COG; cog_keys.c has the keys. */
#include "config/product_config.h"
#include "config/product_words.h"
#include "pipeline/paint/paint_config.h"
#include "pipeline/paint/paint_steps.h"

enum pb_cog_blocks_choice { PB_COG_BLOCKS_AUTO, PB_COG_BLOCKS_ENCODE };

enum pb_cog_alpha { PB_COG_ALPHA_AUTO, PB_COG_ALPHA_NO, PB_COG_ALPHA_YES };

struct pb_cog_config {
    struct pb_product_config product;
    enum pb_type type;
    enum pb_compress compress;
    int32_t level;     /* 0 = the codec's default */
    int32_t quality;   /* 0 = the codec's default; for jpeg and webp */
    int32_t predictor; /* 1 none, 2 horizontal, 3 floating point; 0 = auto */
    int32_t blocksize; /* power of two, 64 .. 4096 */
    int32_t blocks;    /* enum pb_cog_blocks_choice */
    enum pb_overviews overviews;
    bool has_nodata;
    double nodata; /* default of floats: NaN; integers need a value or a mask */
    int32_t mask;  /* bool */
    int32_t valid; /* enum pb_joint: for products with a mask or an alpha band, and for pictures */
    bool has_scale;
    double scale, offset;    /* value = stored * scale + offset */
    char *unit;              /* unit of the values; NULL = that of the scene's band */
    struct pb_items classes; /* names of the values of its one band; n 0 = none */
    int32_t alpha;           /* enum pb_cog_alpha */
    struct pb_paint_config paint;
    bool is_painted; /* levels or colours of 8 bits are made; then valid: */
    bool has_alpha;
    struct pb_paint_steps steps; /* colours for a device; n 0: it cannot paint them */
};

struct pb_product_env;
struct pb_band_facts;
/* Gets the properties of the band of plane `plane` in a product of n_bands: as configured, else
 * those of the scene's band if it is copied unchanged. */
void pb_cog_facts(const struct pb_product_env *env, const struct pb_cog_config *cog, uint32_t plane,
                  uint32_t n_bands, struct pb_band_facts *out);
#endif
