/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_ENCODER_H
#define PB_BLOCK_ENCODER_H
/* Encodes one block of a product: in: float32 planes of values, and residual planes of the digits
 * that float32 loses (codec/rest.h); out: a compressed chunky block. Quantizes, pads to the full
 * block with nodata, predicts a row at a time while it is in the first-level cache, then
 * compresses. An encoder owns all memory it needs and belongs to one thread. */
#include "config/base/err.h"
#include "pipeline/codec/codec.h"
#include "pipeline/codec/quantize.h"
#include "pipeline/codec/rest.h"
#include "pipeline/paint/painter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_block_format {
    int32_t block_px;
    uint32_t n_planes; /* input planes: values, then residuals */
    uint32_t n_bands;  /* bands of the block: as many as values, or the painter's channels */
    const struct pb_painter *painter; /* makes the pixels of 8 bits; NULL = values are rounded */
    /* For each value: count of its residual planes, in their order; NULL = no residuals. Borrowed.
     */
    const uint8_t *n_rest;
    double scale, offset; /* stored = (value - offset) / scale; scale 0: stored = value */
    struct pb_quantizer quantizer;
    int predictor;
    const struct pb_codec *codec;
    int level;
};

/* Pixels of a block: w x h, 1 <= w, h <= block_px, rows row_px apart. Row y of plane b is at
 * upper[b] + y * row_px, from row `split` on at lower[b] + (y - split) * row_px. upper NULL: no
 * pixel is valid. */
struct pb_block_pixels {
    const float *const *upper, *const *lower;
    int32_t split;
    size_t row_px;
    int32_t w, h;
};

struct pb_block_encoder;

/* Returns the planes that have row y, and its offset in them in pixels. */
static inline const float *const *pb_block_row(const struct pb_block_pixels *px, int32_t y,
                                               size_t *out_at)
{
    const bool is_upper = y < px->split;
    *out_at = (size_t)(is_upper ? y : y - px->split) * px->row_px;
    return is_upper ? px->upper : px->lower;
}

uint64_t pb_block_raw_bytes(const struct pb_block_format *format);
uint64_t pb_block_encoder_bytes(const struct pb_block_format *format);
/* format is borrowed until destroy. */
int pb_block_encoder_create(const struct pb_block_format *format, struct pb_err *err,
                            struct pb_block_encoder **out_encoder);
/* *out_data is valid until the next call. */
int pb_block_encode(struct pb_block_encoder *encoder, const struct pb_block_pixels *pixels,
                    struct pb_err *err, const void **out_data, size_t *out_bytes);
/* Compresses a block that is already predicted: raw has pb_block_raw_bytes(). Same lifetime. */
int pb_block_compress(struct pb_block_encoder *encoder, const void *raw, struct pb_err *err,
                      const void **out_data, size_t *out_bytes);
/* Memory for a compressed block, until the next call; NULL if blocks are not compressed. */
void *pb_block_encoder_room(struct pb_block_encoder *encoder, size_t *out_bytes);
/* Valid values of the last block that were moved off nodata (codec/quantize.h). */
uint64_t pb_block_encoder_moved(const struct pb_block_encoder *encoder);
void pb_block_encoder_destroy(struct pb_block_encoder *encoder); /* NULL is fine */
#endif
