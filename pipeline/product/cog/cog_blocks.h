/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_BLOCKS_H
#define PB_COG_BLOCKS_H
/* Decides if the scene's file already has the blocks of a COG (cog/same_blocks.h), from its
 * header and the configuration: the result is the same on every machine. Pure; any thread. */
#include "pipeline/cog/cog_writer.h"
#include "pipeline/product/cog/cog.h"
#include "pipeline/product/product.h"

struct pb_cog_blocks {
    bool passes; /* the product's bands are those of the file, complete, in order and unchanged, and
                    the codec of its blocks preserves them */
    bool copied; /* and its blocks have the product's format; if false: */
    char why[120];              /* reason for users, after "blocks encoded anew: " */
    struct pb_same_blocks same; /* when copied; raster is not set */
};

/* options: of the product, with its residual planes; plane: of its bands, n_bands of the
 * options. */
void pb_cog_blocks(const struct pb_product_env *env, const struct pb_cog_config *config,
                   const struct pb_cog_options *options, const uint32_t *plane,
                   struct pb_cog_blocks *out);
#endif
