/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_OPTIONS_H
#define PB_COG_OPTIONS_H
/* Conversion of the configuration of a COG to the options of its writer. Pure; any thread. */
#include "pipeline/cog/cog_writer.h"
#include "pipeline/product/cog/cog_paint.h"
#include "pipeline/product/product.h"

/* painter: NULL unless it is a picture. */
struct pb_cog_options pb_cog_options_of(const struct pb_product_env *env,
                                        const struct pb_cog_config *config, uint32_t n_bands,
                                        const struct pb_painter *painter);
/* Adds the options that depend on the chain, for these planes of tiles: only tags and places are
 * missing then. */
void pb_cog_options_complete(const struct pb_product_env *env, const struct pb_cog_config *config,
                             const uint32_t *plane, struct pb_cog_options *options);
#endif
