/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_FACTS_H
#define PB_STAC_FACTS_H
/* What the scene's metadata say, in a STAC item: who took it, from where the sun and the satellite
 * stood (view 1.0.0), its orbit (sat 1.1.0), clouds and what bands are called (eo 2.0.0), and how
 * bands were calibrated.
 */
#include "pipeline/product/stac/stac_asset.h"

/* Members of the item's properties. */
void pb_stac_facts(const struct pb_stac_item *item);
/* Whether the item has members of these extensions. */
bool pb_stac_has_view(const struct pb_stac_item *item);
bool pb_stac_has_sat(const struct pb_stac_item *item);
bool pb_stac_has_eo(const struct pb_stac_item *item);
bool pb_stac_has_sar(const struct pb_stac_item *item);
/* Members of a band of an asset that is a band of the product, calibrated in place or not. */
void pb_stac_band_facts(const struct pb_stac_item *item, const char *band);
/* A member "calibration" of an object. */
void pb_stac_calibration(struct pb_json *json, const struct pb_product_env *env);
#endif
