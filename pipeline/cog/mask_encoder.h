/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MASK_ENCODER_H
#define PB_MASK_ENCODER_H
/* Encodes one block of a product's mask: a bit for each pixel, 1 if all bands are valid (with
 * `any`: if one is), compressed. An encoder owns all memory it needs and belongs to one thread. */
#include "config/base/err.h"
#include "pipeline/codec/codec.h"
#include "pipeline/cog/block_encoder.h"

#include <stddef.h>
#include <stdint.h>

struct pb_mask_encoder;

/* Codec of the masks of blocks of this codec: deflate, or no compression if it does not compress.
 */
const struct pb_codec *pb_mask_codec(const struct pb_codec *codec);
uint64_t pb_mask_raw_bytes(int32_t block_px);
uint64_t pb_mask_encoder_bytes(const struct pb_codec *codec, int32_t block_px);
/* codec: result of pb_mask_codec. block_px: a multiple of 8. */
int pb_mask_encoder_create(const struct pb_codec *codec, int32_t block_px, uint32_t n_bands,
                           bool any, struct pb_err *err, struct pb_mask_encoder **out_encoder);
/* NaN = invalid. Pixels outside are 0. *out_data is valid until the next call. */
int pb_mask_encode(struct pb_mask_encoder *encoder, const struct pb_block_pixels *pixels,
                   struct pb_err *err, const void **out_data, size_t *out_bytes);
/* Compresses a mask whose bits are set already: raw has pb_mask_raw_bytes(). Same lifetime. */
int pb_mask_compress(struct pb_mask_encoder *encoder, const void *raw, struct pb_err *err,
                     const void **out_data, size_t *out_bytes);
void pb_mask_encoder_destroy(struct pb_mask_encoder *encoder); /* NULL is fine */
#endif
