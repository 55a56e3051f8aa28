/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_PROCESSING_H
#define PB_STAC_PROCESSING_H
/* Processing of the pixels as data, for STAC's processing extension: their scaling, and the
 * formula of every band (as text: stac_lineage.h). Read from the pipeline's configuration and
 * the operators' descriptors, so that a new operator is recorded without a line here. */
#include "config/base/json_writer.h"
#include "pipeline/product/product.h"

/* Writes "processing:expression" for the whole item: the input rule and every step with its
 * parameters. */
void pb_stac_expression(struct pb_json *json, const struct pb_product_env *env);

/* Writes "processing:expression" of one band if a single formula describes it: a band of math or
 * index that no later step changed, or an input band that no step changed. */
void pb_stac_band_expression(struct pb_json *json, const struct pb_product_env *env,
                             const char *band);
#endif
