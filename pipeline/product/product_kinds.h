/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_KINDS_H
#define PB_PRODUCT_KINDS_H
/* Kinds of products.def for the configuration: names and keys, without the code that makes
 * products. Each is in <kind>_keys.c. Static, read-only; any thread. */
#include "config/product_config.h"

#define PB_PRODUCT(name) extern const struct pb_product_kind pb_kind_##name;
#include "pipeline/product/products.def"
#undef PB_PRODUCT

/* All kinds, for pb_config_load; without is_crs, for which PROJ's database would be opened: a
 * process that is confined or forks afterwards must not. */
extern const struct pb_product_kinds pb_products;
/* Finds a kind by name: "cog"; NULL = not found. */
const struct pb_product_kind *pb_product_kind_find(const char *name);

/* Rows that kinds share; config: the kind's struct, which begins with a member `product`. */
#define PB_PRODUCT_KEY_NAME(config, sample_)                                                       \
    {                                                                                              \
        .name = "name", .type = PB_KEY_NAME, .offset = offsetof(config, product.name),             \
        .example = sample_,                                                                        \
        .doc = "Part of the file name, <scene>.<name>; needed when a kind is there more than "     \
               "once."                                                                             \
    }
#define PB_PRODUCT_KEY_BANDS(config, sample_, doc_)                                                \
    {                                                                                              \
        .name = "bands", .type = PB_KEY_BANDS, .offset = offsetof(config, product.bands),          \
        .more = offsetof(config, product.n_bands), .example = "[NDVI]", .sample = sample_,         \
        .doc = doc_                                                                                \
    }
#define PB_PRODUCT_EVERY_BAND "Which bands; without this key: every band the steps made."
#endif
