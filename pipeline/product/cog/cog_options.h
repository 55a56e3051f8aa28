/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_OPTIONS_H
#define PB_COG_OPTIONS_H
/* From the configuration of a COG to the options of its writer. Pure; any thread. */
#include "pipeline/cog/cog_writer.h"
#include "pipeline/paint/painter.h"
#include "pipeline/product/cog/cog.h"
#include "pipeline/product/product.h"

/* ramp may be NULL for the plan, which wants to know the channels alone. */
struct pb_painter pb_cog_painter(const struct pb_cog_config *config, uint32_t n_bands,
                                 const struct pb_ramp_table *ramp);
/* painter: NULL unless it is a picture. */
/* Whether pixels of a product of n_bands, shade among them, are valid where any of its bands is. */
bool pb_cog_any(const struct pb_cog_config *config, uint32_t n_bands);
struct pb_cog_options pb_cog_options_of(const struct pb_product_env *env,
                                        const struct pb_cog_config *config, uint32_t n_bands,
                                        const struct pb_painter *painter);
/* What the chain says as well, of these planes of tiles: all but tags and places is there then. */
void pb_cog_options_complete(const struct pb_product_env *env, const struct pb_cog_config *config,
                             const uint32_t *plane, struct pb_cog_options *options);
#endif
