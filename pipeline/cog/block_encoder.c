/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Pixels outside the image are nodata, because they have no value; a run of equal values compresses
 * to a few bytes. In blocks of pictures they repeat the image's edge. Blocks without a valid pixel
 * are all equal, except that with a ramp that colours invalid pixels only those of one size are:
 * the result of the last one is reused for the next. */
#include "pipeline/cog/block_encoder.h"
#include "kernels/codec/quantize_pixel.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/io/pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pb_block_encoder {
    const struct pb_block_format *format;
    size_t pixel_bytes, row_bytes, raw_bytes, capacity;
    void *context;
    char *row;     /* one quantized row */
    char *nodata;  /* one row of nodata only, and ... */
    char *outside; /* ... the same, predicted */
    char *raw;     /* predicted block */
    float *scaled; /* a row of one band, scaled for storing; all NaN with a painter */
    const float *none[PB_PAINTER_PLANES_MAX]; /* planes without a valid pixel, one row */
    uint64_t moved;
    char *packed; /* compressed block; NULL if the codec does not compress */
    size_t bytes; /* size of the last encoded block */
    bool nothing; /* the last block had no valid pixel */
    int32_t w, h; /* size of that block in pixels */
};

uint64_t pb_block_raw_bytes(const struct pb_block_format *format)
{
    return (uint64_t)format->block_px * (uint64_t)format->block_px * format->n_bands *
           pb_type_bytes(format->quantizer.type);
}

static struct pb_codec_blocks codec_blocks(const struct pb_block_format *format)
{
    const size_t type_bytes = pb_type_bytes(format->quantizer.type);
    return (struct pb_codec_blocks){
        .bytes = (size_t)pb_block_raw_bytes(format),
        .planes = format->predictor == PB_PREDICTOR_FLOAT ? (uint32_t)type_bytes : 0,
        .row_bytes = (size_t)format->block_px * format->n_bands * type_bytes,
        .sample_bytes = type_bytes,
    };
}

uint64_t pb_block_encoder_bytes(const struct pb_block_format *format)
{
    uint64_t raw = pb_block_raw_bytes(format);
    uint64_t packed = format->codec->encode != NULL ? format->codec->bound((size_t)raw) : 0;
    const struct pb_codec_blocks blocks = codec_blocks(format);
    return sizeof(struct pb_block_encoder) + raw + (uint64_t)format->block_px * sizeof(float) +
           packed + 3 * (raw / (uint64_t)format->block_px) +
           format->codec->context_bytes(format->level, &blocks);
}

int pb_block_encoder_create(const struct pb_block_format *format, struct pb_err *err,
                            struct pb_block_encoder **out_encoder)
{
    struct pb_block_encoder *e = calloc(1, sizeof *e);
    if (e == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for an encoder");
    e->format = format;
    const struct pb_codec_blocks blocks = codec_blocks(format);
    e->pixel_bytes = pb_type_bytes(format->quantizer.type) * format->n_bands;
    e->row_bytes = blocks.row_bytes;
    e->raw_bytes = blocks.bytes;
    e->row = malloc(e->row_bytes);
    e->nodata = malloc(e->row_bytes);
    e->outside = malloc(e->row_bytes);
    e->raw = pb_pages_alloc(e->raw_bytes);
    e->scaled = malloc((size_t)format->block_px * sizeof *e->scaled);
    bool ok = e->scaled != NULL && e->row != NULL && e->nodata != NULL && e->outside != NULL &&
              e->raw != NULL;
    if (format->codec->encode != NULL) {
        e->capacity = format->codec->bound(e->raw_bytes);
        e->packed = pb_pages_alloc(e->capacity);
        ok = ok && e->packed != NULL;
    }
    const struct pb_codec *codec = format->codec;
    ok = ok && codec->create(format->level, &blocks, &e->context) == 0;
    if (ok && codec->shape != NULL)
        ok = codec->shape(e->context, format->block_px, format->n_bands) == 0;
    if (!ok) {
        pb_block_encoder_destroy(e);
        return pb_fail(err, PB_E_MEMORY, "no memory for an encoder of %d px blocks",
                       format->block_px);
    }
    pb_quantize_nodata(&format->quantizer, (size_t)format->block_px * format->n_bands, e->nodata);
    pb_predict_row(format->predictor, format->quantizer.type, e->nodata, (size_t)format->block_px,
                   format->n_bands, e->outside);
    for (int32_t x = 0; x < format->block_px && format->painter != NULL; x++)
        e->scaled[x] = NAN;
    for (int p = 0; p < PB_PAINTER_PLANES_MAX; p++)
        e->none[p] = e->scaled;
    *out_encoder = e;
    return 0;
}

void pb_block_encoder_destroy(struct pb_block_encoder *e)
{
    if (e == NULL)
        return;
    e->format->codec->destroy(e->context);
    free(e->row);
    free(e->nodata);
    free(e->outside);
    pb_pages_free(e->raw, e->raw_bytes);
    free(e->scaled);
    pb_pages_free(e->packed, e->capacity);
    free(e);
}

void *pb_block_encoder_room(struct pb_block_encoder *e, size_t *out_bytes)
{
    e->nothing = false; /* its result will be overwritten */
    *out_bytes = e->capacity;
    return e->packed;
}

uint64_t pb_block_encoder_moved(const struct pb_block_encoder *e)
{
    return e->moved;
}

static const float *scaled(struct pb_block_encoder *e, const float *values, int32_t w)
{
    const double scale = e->format->scale, offset = e->format->offset;
    if (scale == 0)
        return values;
    for (int32_t x = 0; x < w; x++)
        e->scaled[x] = pb_quantize_scaled(values[x], scale, offset);
    return e->scaled;
}

/* Quantizes a row of one band; rests: the next residual planes. Returns how many of them it used.
 */
static uint32_t fill_band(struct pb_block_encoder *e, const float *const *planes, uint32_t b,
                          const float *const *rests, size_t at, int32_t w)
{
    const struct pb_block_format *format = e->format;
    uint32_t n_rest = format->n_rest != NULL ? format->n_rest[b] : 0;
    char *to = e->row + b * pb_type_bytes(format->quantizer.type);
    const float *rest[PB_REST_MAX] = {NULL};
    for (uint32_t k = 0; k < n_rest; k++)
        rest[k] = rests[k] + at;
    e->moved += n_rest > 0 ? pb_rest_quantize(&format->quantizer, planes[b] + at, rest, n_rest,
                                              (size_t)w, to, format->n_bands)
                           : pb_quantize(&format->quantizer, scaled(e, planes[b] + at, w),
                                         (size_t)w, to, format->n_bands);
    return n_rest;
}

static void fill_row(struct pb_block_encoder *e, const float *const *planes, size_t at, int32_t w)
{
    const struct pb_block_format *format = e->format;
    size_t valid = (size_t)w * e->pixel_bytes;
    uint32_t next = format->n_bands; /* index of the next residual plane */
    if (format->painter != NULL)
        pb_painter_row(format->painter, planes, at, (size_t)w, (uint8_t *)e->row);
    for (uint32_t b = 0; b < format->n_bands && format->painter == NULL; b++)
        next += fill_band(e, planes, b, planes + next, at, w);
    if (format->codec->bands == 0)
        memcpy(e->row + valid, e->nodata, e->row_bytes - valid);
    else /* no edge, which would be visible in the adjacent pixels */
        for (size_t i = valid; i < e->row_bytes; i++)
            e->row[i] = e->row[i - e->pixel_bytes];
}

static bool has_pixel(const struct pb_block_encoder *e, const struct pb_block_pixels *px)
{
    for (uint32_t b = 0; b < e->format->n_planes && px->upper != NULL; b++)
        for (int32_t y = 0; y < px->h; y++) {
            size_t at;
            const float *row = pb_block_row(px, y, &at)[b] + at;
            bool any = false;
            for (int32_t x = 0; x < px->w; x++)
                any |= row[x] == row[x];
            if (any)
                return true;
        }
    return false;
}

static int compress(struct pb_block_encoder *e, const void *raw, struct pb_err *err)
{
    const struct pb_codec *codec = e->format->codec;
    e->bytes = e->raw_bytes;
    if (codec->encode != NULL &&
        codec->encode(e->context, raw, e->raw_bytes, e->packed, e->capacity, &e->bytes) != 0)
        return pb_fail(err, PB_E_SYSTEM, "the %s codec failed on a block of %zu bytes", codec->name,
                       e->raw_bytes);
    return 0;
}

static int encode(struct pb_block_encoder *e, const struct pb_block_pixels *px, struct pb_err *err)
{
    const struct pb_block_format *format = e->format;
    for (int32_t y = 0; y < format->block_px; y++) {
        char *to = e->raw + (size_t)y * e->row_bytes;
        size_t at = 0;
        if (y >= px->h && format->codec->bands != 0) {
            memcpy(to, to - e->row_bytes, e->row_bytes);
            continue;
        }
        if (y >= px->h || (px->upper == NULL && format->painter == NULL)) {
            memcpy(to, e->outside, e->row_bytes);
            continue;
        }
        const float *const *planes = px->upper != NULL ? pb_block_row(px, y, &at) : e->none;
        fill_row(e, planes, at, px->w);
        pb_predict_row(format->predictor, format->quantizer.type, e->row, (size_t)format->block_px,
                       format->n_bands, to);
    }
    return compress(e, e->raw, err);
}

int pb_block_encode(struct pb_block_encoder *e, const struct pb_block_pixels *px,
                    struct pb_err *err, const void **out_data, size_t *out_bytes)
{
    e->moved = 0;
    bool nothing = !has_pixel(e, px);
    bool alike = e->format->painter == NULL || (px->w == e->w && px->h == e->h);
    int rc = nothing && e->nothing && alike ? 0 : encode(e, px, err);
    e->nothing = nothing && rc == 0;
    e->w = px->w;
    e->h = px->h;
    *out_data = e->packed != NULL ? e->packed : e->raw;
    *out_bytes = e->bytes;
    return rc;
}

int pb_block_compress(struct pb_block_encoder *e, const void *raw, struct pb_err *err,
                      const void **out_data, size_t *out_bytes)
{
    int rc = compress(e, raw, err);
    e->nothing = false; /* its result was overwritten */
    *out_data = e->packed != NULL ? e->packed : raw;
    *out_bytes = e->bytes;
    return rc;
}
