/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_COPY_H
#define PB_BLOCK_COPY_H
/* Copies samples of a decoded block, in host byte order, to the destination of a read: bands taken
 * out of pixels, the mask made from alpha. Private to block_reader.c. Thread: any. */
#include "pipeline/raster/block_layout.h"
#include "pipeline/raster/complex.h"
#include "pipeline/raster/raster.h"

/* The value of pixels in blocks that are not stored, by band: a sample in host byte order. */
struct pb_block_fill {
    _Alignas(8) unsigned char sample[PB_BANDS_MAX][8];
};

/* Parameters of a read; all pointers are borrowed. */
struct pb_block_target {
    const struct pb_block_layout *layout;
    const struct pb_rect *rect;
    const int32_t *bands;         /* 1-based */
    size_t n_bands, sample_bytes; /* bytes of a copied sample */
    enum pb_type type;
    const struct pb_complex
        *complex;       /* conversion of stored samples to `type`; NULL = no conversion */
    int32_t alpha_band; /* 1-based, 0 = none */
    const struct pb_block_fill *fill;
    const struct pb_window *to; /* NULL: nothing */
};

bool pb_block_wants_plane(const struct pb_block_target *target, uint32_t plane);
/* Copies a row of w pixels of a block of `plane`; they are at x, y of the image. */
void pb_block_copy_row(const struct pb_block_target *target, uint32_t plane, int32_t x, int32_t y,
                       int32_t w, const unsigned char *pixels);
/* Returns true if rows of `plane` need not be decoded completely: pb_block_undo_row copies the
 * bands of a row, from its first pixel on, and undoes their predictor and byte order. */
bool pb_block_is_by_band(const struct pb_block_target *target, uint32_t plane);
void pb_block_undo_row(const struct pb_block_target *target, uint32_t plane, int32_t x, int32_t y,
                       int32_t w, const unsigned char *pixels);
/* The same for a part of a block that is not stored. */
void pb_block_fill_part(const struct pb_block_target *target, uint32_t plane,
                        const struct pb_rect *part);
#endif
