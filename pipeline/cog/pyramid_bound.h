/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PYRAMID_BOUND_H
#define PB_PYRAMID_BOUND_H
/* Largest count of blocks, and of halves of blocks, of each level in a pyramid at one time. Pure
 * arithmetic with some MiB of temporary memory, whatever the image. Thread: any. */
#include "pipeline/cog/pyramid.h"

/* Blocks in one row (column) of level `level`. */
int32_t pb_pyramid_blocks(int32_t image_px, int32_t block_px, uint32_t level);
/* Counts for a level. A block is held from the first to the last of its tiles, its lower half from
 * the first tile that has a part of it. */
struct pb_pyramid_held {
    uint32_t blocks, halves;
};

/* Fills out_held[1 .. levels] ([0]: zeros). 0 or -ENOMEM. */
int pb_pyramid_bound(const struct pb_pyramid_options *options, struct pb_pyramid_held *out_held);
#endif
