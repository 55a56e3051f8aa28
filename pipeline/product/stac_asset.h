/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_ASSET_H
#define PB_STAC_ASSET_H
/* The assets of a STAC item: one for every product made before, with its grid, its bands and what
 * it takes to check the file. */
#include "config/base/json_writer.h"
#include "pipeline/product/product.h"

/* Everything that finish() writes from. */
struct pb_stac_item {
    const struct pb_product_env *env;
    const struct pb_product_config *config;
    const struct pb_product_result *results;
    size_t n_results;
    struct pb_json *json;
    char *lineage, *wkt2, *projjson; /* owned; the last two may be NULL */
};

/* Writes asset i of the item's results under its key. 0 or a negative errno with *err. */
int pb_stac_asset(const struct pb_stac_item *item, size_t i, struct pb_err *err);
/* Writes "proj:code": the scene's code, null when it has none. */
void pb_stac_code(const struct pb_stac_item *item);
/* prefix and the escaped file name as a relative URI reference. */
void pb_stac_href(const char *prefix, const char *file, char *out, size_t bytes);
#endif
