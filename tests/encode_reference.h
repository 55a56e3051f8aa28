/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ENCODE_REFERENCE_H
#define PB_ENCODE_REFERENCE_H
/* The CPU's encoding of a block that a device encodes. */
#include "kernels/codec/encode_device.h"
#include "pipeline/codec/deflate_strings.h"
#include "pipeline/cog/block_encoder.h"
#include "pipeline/cog/mask_encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct encode_reference {
    uint8_t *raw, *encoded; /* freed by encode_reference_free */
    size_t raw_bytes, encoded_bytes;
    uint64_t moved;
    bool has_strings; /* the host encodes the block */
    bool has_pairs;   /* it is searched by pairs */
};

static inline int encode_level_of(const struct pb_encode_format *format)
{
    return format->with == PB_ENCODE_INTEGERS || format->with == PB_ENCODE_PAIRS
               ? pb_codec_deflate.default_level
               : pb_codec_deflate.default_float_level;
}

static inline uint8_t *encode_copied(const void *data, size_t bytes)
{
    uint8_t *copy = malloc(bytes);
    if (copy != NULL)
        memcpy(copy, data, bytes);
    return copy;
}

/* A block by the codec. */
static inline bool encode_by(const struct pb_encode_format *f, const struct pb_encode_block *block,
                             const struct pb_codec *codec, uint8_t **out, size_t *out_bytes,
                             uint64_t *moved)
{
    const float *planes[PB_ENCODE_BANDS_MAX];
    struct pb_block_format format = {
        .block_px = f->block_px,
        .n_planes = f->n_bands,
        .n_bands = f->n_bands,
        .scale = f->scale,
        .offset = f->offset,
        .quantizer = f->quantizer,
        .predictor = f->predictor,
        .codec = codec,
        .level = encode_level_of(f),
    };
    struct pb_err err = {0};
    struct pb_block_encoder *blocks = NULL;
    struct pb_mask_encoder *masks = NULL;
    const void *data = NULL;
    for (uint32_t b = 0; b < f->n_bands; b++)
        planes[b] = block->data != NULL ? block->data + f->plane[b] * block->plane_px : NULL;
    int rc = f->mask ? pb_mask_encoder_create(codec, f->block_px, f->n_bands, f->any, &err, &masks)
                     : pb_block_encoder_create(&format, &err, &blocks);
    const struct pb_block_pixels pixels = {
        block->data != NULL ? planes : NULL, NULL, f->block_px, block->row_px, block->w, block->h};
    if (rc == 0 && f->mask)
        rc = pb_mask_encode(masks, &pixels, &err, &data, out_bytes);
    else if (rc == 0)
        rc = pb_block_encode(blocks, &pixels, &err, &data, out_bytes);
    *out = rc == 0 ? encode_copied(data, *out_bytes) : NULL;
    *moved = rc == 0 && !f->mask ? pb_block_encoder_moved(blocks) : 0;
    pb_mask_encoder_destroy(masks);
    pb_block_encoder_destroy(blocks);
    if (rc != 0)
        (void)fprintf(stderr, "%s\n", err.msg);
    return *out != NULL;
}

/* block->data is host memory; false: the encoder failed, with words on stderr. */
static inline bool encode_reference_make(const struct pb_encode_format *format,
                                         const struct pb_encode_block *block,
                                         struct encode_reference *out)
{
    static struct pb_deflate_strings work;
    memset(out, 0, sizeof *out);
    if (!encode_by(format, block, &pb_codec_none, &out->raw, &out->raw_bytes, &out->moved) ||
        !encode_by(format, block, &pb_codec_deflate, &out->encoded, &out->encoded_bytes,
                   &out->moved))
        return false;
    if (format->with != PB_ENCODE_INTEGERS && format->with != PB_ENCODE_PAIRS)
        return true;
    const enum pb_strings strings = pb_deflate_strings(&work, out->raw, out->raw_bytes);
    out->has_pairs = format->with == PB_ENCODE_PAIRS && strings == PB_STRINGS_SOME;
    out->has_strings = strings != PB_STRINGS_NONE && !out->has_pairs;
    return true;
}

/* Samples of pixel x, y of a block as floats: painted by the host's painter or, without one, by the
 * steps, or the values themselves. */
static inline void encode_reference_pixel(const struct pb_encode_format *format,
                                          const struct pb_paint_step *steps,
                                          const struct pb_painter *painter,
                                          const struct pb_encode_block *block, size_t at,
                                          float *out)
{
    float value[PB_ENCODE_BANDS_MAX];
    const float *plane[PB_ENCODE_BANDS_MAX];
    uint8_t made[4] = {0};
    for (uint32_t p = 0; p < pb_encode_planes(format); p++) {
        value[p] = block->data != NULL ? block->data[format->plane[p] * block->plane_px + at] : NAN;
        plane[p] = &value[p];
    }
    if (format->paint.n_planes == 0) {
        memcpy(out, value, format->n_bands * sizeof *out);
        return;
    }
    if (painter != NULL)
        pb_painter_row(painter, plane, 0, 1, made);
    else
        pb_paint_pixel(&format->paint, steps, value, made);
    for (uint32_t b = 0; b < format->n_bands; b++)
        out[b] = (float)made[b];
}

/* The same as encode_reference_make for a format that paints, or repeats the pixels of an edge: its
 * samples become a plain block. */
static inline bool encode_reference_painted(const struct pb_encode_format *format,
                                            const struct pb_paint_step *steps,
                                            const struct pb_painter *painter,
                                            const struct pb_encode_block *block,
                                            struct encode_reference *out)
{
    struct pb_encode_format plain = *format;
    struct pb_encode_block whole = *block;
    float sample[PB_ENCODE_BANDS_MAX], *planes;
    if (format->mask || (format->paint.n_planes == 0 && !format->repeats))
        return encode_reference_make(format, block, out);
    whole.w = format->repeats ? format->block_px : block->w;
    whole.h = format->repeats ? format->block_px : block->h;
    whole.row_px = (uint32_t)whole.w;
    whole.plane_px = (uint64_t)whole.w * (uint64_t)whole.h;
    whole.data = planes = malloc(whole.plane_px * format->n_bands * sizeof *planes);
    if (planes == NULL)
        return false;
    for (uint64_t i = 0; i < whole.plane_px; i++) {
        const int32_t x = (int32_t)(i % whole.row_px), y = (int32_t)(i / whole.row_px);
        const size_t at = (size_t)(y < block->h ? y : block->h - 1) * block->row_px +
                          (size_t)(x < block->w ? x : block->w - 1);
        encode_reference_pixel(format, steps, painter, block, at, sample);
        for (uint32_t b = 0; b < format->n_bands; b++)
            planes[b * whole.plane_px + i] = sample[b];
    }
    for (uint32_t b = 0; b < format->n_bands; b++)
        plain.plane[b] = (uint16_t)b;
    if (format->paint.n_planes > 0) /* levels are off nodata already */
        plain.quantizer.below = plain.quantizer.above = plain.quantizer.nodata;
    plain.paint = (struct pb_paint){.n_planes = 0};
    plain.repeats = false;
    const bool good = encode_reference_make(&plain, &whole, out);
    free(planes);
    return good;
}

static inline void encode_reference_free(struct encode_reference *reference)
{
    free(reference->raw);
    free(reference->encoded);
}

/* nodata NaN or a number: as pb_quantizer_init, or with `masked` pb_quantizer_init_masked. */
static inline bool encode_reference_quantizer(enum pb_type type, double nodata, bool masked,
                                              struct pb_quantizer *out)
{
    return (masked ? pb_quantizer_init_masked(out, type, nodata)
                   : pb_quantizer_init(out, type, nodata)) == 0;
}
#endif
