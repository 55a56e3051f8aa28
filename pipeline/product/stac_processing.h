/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_PROCESSING_H
#define PB_STAC_PROCESSING_H
/* The processing of the pixels, for STAC's processing extension: how they were scaled, which were
 * invalid, and the formula of every band, as text and as data. Read from the pipeline's config and
 * the operators' descriptors, so that a new operator is recorded without a line here. */
#include "config/base/json_writer.h"
#include "pipeline/product/product.h"

/* "value = DN * 0.0001 + 0 (input.scale, input.offset of pipeline vegetation); ..." malloc'd, the
 * caller's; NULL = out of memory. */
char *pb_stac_lineage(const struct pb_product_env *env);

/* Writes "processing:expression" for the whole item: the input rule and every step with its
 * parameters. */
void pb_stac_expression(struct pb_json *json, const struct pb_product_env *env);

/* Writes "processing:expression" of one band when a single formula describes it: a band of math or
 * index that no later step changed, or an input band that no step changed. */
void pb_stac_band_expression(struct pb_json *json, const struct pb_product_env *env,
                             const char *band);
#endif
