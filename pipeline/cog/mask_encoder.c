/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/cog/mask_encoder.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct pb_mask_encoder {
    const struct pb_codec *codec;
    uint32_t n_bands;
    bool any;
    size_t row_bytes, raw_bytes, capacity;
    void *context;
    bool *valid;        /* validity of the pixels of a row, including those outside */
    unsigned char *raw; /* the block's bits, the first pixel in the highest */
    char *packed;       /* NULL if the codec does not compress */
};

const struct pb_codec *pb_mask_codec(const struct pb_codec *codec)
{
    return codec->encode == NULL ? codec : &pb_codec_deflate;
}

uint64_t pb_mask_raw_bytes(int32_t block_px)
{
    return (uint64_t)block_px / 8 * (uint64_t)block_px;
}

uint64_t pb_mask_encoder_bytes(const struct pb_codec *codec, int32_t block_px)
{
    uint64_t raw = pb_mask_raw_bytes(block_px);
    uint64_t packed = codec->encode != NULL ? codec->bound((size_t)raw) : 0;
    const struct pb_codec_blocks blocks = {.bytes = (size_t)raw};
    return sizeof(struct pb_mask_encoder) + (uint64_t)block_px + raw + packed +
           codec->context_bytes(codec->default_level, &blocks);
}

int pb_mask_encoder_create(const struct pb_codec *codec, int32_t block_px, uint32_t n_bands,
                           bool any, struct pb_err *err, struct pb_mask_encoder **out_encoder)
{
    struct pb_mask_encoder *e = calloc(1, sizeof *e);
    if (e == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for an encoder");
    e->codec = codec;
    e->n_bands = n_bands;
    e->any = any;
    e->row_bytes = (size_t)block_px / 8;
    e->raw_bytes = (size_t)pb_mask_raw_bytes(block_px);
    e->valid = calloc((size_t)block_px, sizeof *e->valid);
    e->raw = malloc(e->raw_bytes);
    bool ok = e->valid != NULL && e->raw != NULL;
    if (codec->encode != NULL) {
        e->capacity = codec->bound(e->raw_bytes);
        e->packed = malloc(e->capacity);
        ok = ok && e->packed != NULL;
    }
    const struct pb_codec_blocks blocks = {.bytes = e->raw_bytes};
    if (!ok || codec->create(codec->default_level, &blocks, &e->context) != 0) {
        pb_mask_encoder_destroy(e);
        return pb_fail(err, PB_E_MEMORY, "no memory for an encoder of %d px blocks", block_px);
    }
    *out_encoder = e;
    return 0;
}

void pb_mask_encoder_destroy(struct pb_mask_encoder *e)
{
    if (e == NULL)
        return;
    e->codec->destroy(e->context);
    free(e->valid);
    free(e->raw);
    free(e->packed);
    free(e);
}

static void find_valid(bool *valid, const float *const *planes, uint32_t n, bool any, size_t at,
                       int32_t w)
{
    const float *first = planes[0] + at;
    for (int32_t x = 0; x < w; x++)
        valid[x] = first[x] == first[x];
    for (uint32_t b = 1; b < n; b++) {
        const float *row = planes[b] + at;
        for (int32_t x = 0; x < w; x++)
            valid[x] = any ? valid[x] || row[x] == row[x] : valid[x] && row[x] == row[x];
    }
}

static void pack_row(const bool *valid, size_t bytes, unsigned char *out)
{
    for (size_t i = 0; i < bytes; i++) {
        const bool *v = valid + 8 * i;
        out[i] = (unsigned char)(v[0] << 7 | v[1] << 6 | v[2] << 5 | v[3] << 4 | v[4] << 3 |
                                 v[5] << 2 | v[6] << 1 | v[7]);
    }
}

int pb_mask_compress(struct pb_mask_encoder *e, const void *raw, struct pb_err *err,
                     const void **out_data, size_t *out_bytes)
{
    *out_data = raw;
    *out_bytes = e->raw_bytes;
    if (e->codec->encode == NULL)
        return 0;
    *out_data = e->packed;
    if (e->codec->encode(e->context, raw, e->raw_bytes, e->packed, e->capacity, out_bytes) != 0)
        return pb_fail(err, PB_E_SYSTEM, "the %s codec failed on a mask of %zu bytes",
                       e->codec->name, e->raw_bytes);
    return 0;
}

int pb_mask_encode(struct pb_mask_encoder *e, const struct pb_block_pixels *px, struct pb_err *err,
                   const void **out_data, size_t *out_bytes)
{
    const size_t rows = (size_t)px->h;
    memset(e->raw + rows * e->row_bytes, 0, e->raw_bytes - rows * e->row_bytes);
    memset(e->valid, 0, 8 * e->row_bytes * sizeof *e->valid);
    for (int32_t y = 0; y < px->h; y++) {
        size_t at;
        if (px->upper != NULL) {
            const float *const *planes = pb_block_row(px, y, &at);
            find_valid(e->valid, planes, e->n_bands, e->any, at, px->w);
        }
        pack_row(e->valid, e->row_bytes, e->raw + (size_t)y * e->row_bytes);
    }
    return pb_mask_compress(e, e->raw, err, out_data, out_bytes);
}
