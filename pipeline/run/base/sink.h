/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SINK_H
#define PB_SINK_H
/* Receiver of the finished tiles of a pass: a product, or a set of reductions. */
#include "config/base/err.h"
#include "pipeline/product/product.h"

#include <stdint.h>

struct pb_block_room;

struct pb_sink {
    /* Same contract as pb_product_type.tile: called by several writers at once, worker < workers.
     */
    int (*tile)(void *object, const struct pb_tile *tile, const struct pb_tile_planes *pixels,
                uint32_t worker, struct pb_err *err);
    void *object;
    /* Receives finished blocks instead of tiles, like pb_product_type.block; tile is NULL then. */
    int (*block)(void *object, const struct pb_cog_block *block, uint32_t worker,
                 struct pb_err *err);
    void (*expect)(void *object, const struct pb_cog_block *block); /* NULL if absent */
    bool by_lines;              /* like pb_product_type.by_lines */
    uint32_t product;           /* number of the product in the pipeline */
    struct pb_block_room *room; /* with block: memory for blocks that are kept until the product is
                                   finished; NULL if absent */
};
#endif
