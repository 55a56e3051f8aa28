/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SAME_BLOCKS_H
#define PB_SAME_BLOCKS_H
/* Blocks of the full image that need no encoder, because an input file has them: it has the pixels
 * of the planes, in blocks of the same format. The decision depends on a block's pixels and on the
 * file alone, not on tiles or threads. Thread: any. */
#include "pipeline/cog/block_encoder.h"
#include "pipeline/raster/raster.h"

#include <stdbool.h>
#include <stdint.h>

/* Every finite pixel of the planes is the stored pixel x + dx, y + dy of the file. */
struct pb_same_blocks {
    const struct pb_raster *raster; /* with own blocks; borrowed; NULL if no file has them */
    int32_t width, height;          /* size of its image */
    int32_t dx, dy;                 /* multiples of a block's side, not negative */
    /* true: in the file exactly the invalid pixels are nodata; false: only blocks whose pixels are
     * all valid and not nodata are used. */
    bool certain;
};

/* A block of the product: number, planes and size as for pb_block_encode. */
struct pb_same_block {
    uint32_t col, row;
    struct pb_block_pixels pixels;
};

/* The block as stored in the file, in the encoder's memory until its next call; *out_bytes is 0 if
 * it has to be encoded: the encoder would store a pixel as another value, the product's image ends
 * inside the file's image, or other readers would refuse it. Errors of reading: input.*. */
int pb_same_block_take(const struct pb_same_blocks *same, const struct pb_block_format *format,
                       const struct pb_same_block *block, struct pb_block_encoder *encoder,
                       struct pb_err *err, const void **out_data, size_t *out_bytes);
#endif
