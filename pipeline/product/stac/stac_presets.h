/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_PRESETS_H
#define PB_STAC_PRESETS_H
/* Classes or bit fields (classification 2.0.0), in a STAC item, of a quality band for which a
 * step has a preset (kernels/expr/mask_presets.h) and which a product stores unchanged. */
#include "pipeline/product/product.h"

struct pb_json;

/* Returns true if a preset applies to that band with its stored values. */
bool pb_stac_has_preset(const struct pb_product_env *env, const char *band);
/* Writes "classification:classes" or "classification:bitfields", or nothing. */
void pb_stac_preset(struct pb_json *json, const struct pb_product_env *env, const char *band);
#endif
