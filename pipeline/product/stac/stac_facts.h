/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_FACTS_H
#define PB_STAC_FACTS_H
/* Metadata of the scene in a STAC item: its producer, angles of sun and satellite (view 1.0.0),
 * its orbit (sat 1.1.0), clouds and names of bands (eo 2.0.0), and the calibration of bands. */
#include "pipeline/product/stac/stac_asset.h"

/* Writes members of the item's properties. */
void pb_stac_facts(const struct pb_stac_item *item);
/* Returns true if the item has members of these extensions. */
bool pb_stac_has_view(const struct pb_stac_item *item);
bool pb_stac_has_sat(const struct pb_stac_item *item);
bool pb_stac_has_eo(const struct pb_stac_item *item);
bool pb_stac_has_sar(const struct pb_stac_item *item);
/* Writes members of an asset's band that is a band of the product, calibrated in place or not. */
void pb_stac_band_facts(const struct pb_stac_item *item, const char *band);
/* Writes a member "calibration" of an object. */
void pb_stac_calibration(struct pb_json *json, const struct pb_product_env *env);
#endif
