/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_PRESETS_H
#define PB_STAC_PRESETS_H
/* A quality band that a step knows by a preset (kernels/expr/mask_presets.h) and that a product has
 * as it is stored: its classes or bit fields in a STAC item (classification 2.0.0). */
#include "pipeline/product/product.h"

struct pb_json;

/* Whether there are any for that band, with values as stored. */
bool pb_stac_has_preset(const struct pb_product_env *env, const char *band);
/* Writes "classification:classes" or "classification:bitfields", or nothing. */
void pb_stac_preset(struct pb_json *json, const struct pb_product_env *env, const char *band);
#endif
