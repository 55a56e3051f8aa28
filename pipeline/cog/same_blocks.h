/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SAME_BLOCKS_H
#define PB_SAME_BLOCKS_H
/* Blocks of the full image that need no encoder, because a file has them: its pixels are those of
 * the planes, in blocks of the same format. Whether one is taken depends on its pixels and on the
 * file alone, not on tiles or threads. Thread: any. */
#include "pipeline/cog/block_encoder.h"
#include "pipeline/raster/raster.h"

#include <stdbool.h>
#include <stdint.h>

/* Every finite pixel of the planes is the file's at x + dx, y + dy, as stored. */
struct pb_same_blocks {
    const struct pb_raster *raster; /* with own blocks; borrowed; NULL = no file has them */
    int32_t width, height;          /* of its image */
    int32_t dx, dy;                 /* multiples of a block's side, not negative */
    bool certain; /* invalid pixels are nodata in the file, and no others are; else only blocks
                     whose pixels are valid and none of which is nodata are taken */
};

/* A block of the product: number, planes and size as in pb_block_encode. */
struct pb_same_block {
    uint32_t col, row;
    struct pb_block_pixels pixels;
};

/* The block as the file has it, in the encoder's memory until its next call; *out_bytes is 0 where
 * it has to be encoded: the encoder would store a pixel as another value, the product's image ends
 * where the file's goes on, or other readers would not take it. Errors of reading: input.*. */
int pb_same_block_take(const struct pb_same_blocks *same, const struct pb_block_format *format,
                       const struct pb_same_block *block, struct pb_block_encoder *encoder,
                       struct pb_err *err, const void **out_data, size_t *out_bytes);
#endif
