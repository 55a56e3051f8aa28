/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_ASSET_H
#define PB_COG_ASSET_H
/* A COG as an asset of a STAC item: functions of its struct pb_product_type. */
#include "pipeline/product/product.h"

struct pb_cog_config;

/* Lists the names of the file's bands: those of the planes, or of a ramp's channels, and alpha.
 * Returns their count. */
size_t pb_cog_band_names(const struct pb_product_env *env, const struct pb_cog_config *config,
                         size_t n_planes, const char *names[PB_BANDS_MAX]);
bool pb_cog_names_classes(const struct pb_product_env *env, const struct pb_product_config *config);
bool pb_cog_stored(const struct pb_product_env *env, const struct pb_product_config *config,
                   uint32_t plane, struct pb_stored_band *out);
int pb_cog_describe(const struct pb_stac_item *item, const struct pb_product_result *result,
                    struct pb_err *err);
#endif
