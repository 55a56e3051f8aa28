/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Deflate in zlib's framing (TIFF's "Adobe deflate").
 *
 * An explicit level is libdeflate's: whole blocks at once, as TIFF tiles are, at two to three times
 * zlib's speed. The defaults are negative and mean: sample the block; where strings repeat use
 * libdeflate at level -n, else the encoder of deflate_runs.c, which does not search for strings.
 * Measured floats behind predictor 3 are such data: their files are then as small as at any level,
 * at three times the speed. The choice depends on the block's bytes alone. */
#include "pipeline/codec/codec.h"
#include "pipeline/codec/deflate_runs.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES      4
#define SAMPLE_BYTES 8192
#define SAMPLED      ((size_t)SAMPLES * SAMPLE_BYTES)
#define GAIN_PERCENT 2 /* libdeflate's output must be this much smaller to be worth its time */

struct deflate {
    struct libdeflate_compressor *strings;
    struct pb_deflate_runs *runs; /* NULL unless the level is a default */
    uint8_t *sample, *sample_out;
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t deflate_bound(size_t bytes)
{
    return larger(libdeflate_zlib_compress_bound(NULL, bytes), pb_deflate_runs_bound(bytes) + 6);
}

/* libdeflate does not report its sizes; a test compares these with its allocations. */
static uint64_t deflate_context_bytes(int level, size_t block_bytes)
{
    uint64_t strings = level >= 10 ? UINT64_C(10) << 20 : UINT64_C(1) << 20;
    (void)block_bytes;
    if (level > 0)
        return sizeof(struct deflate) + strings;
    return sizeof(struct deflate) + strings + sizeof(struct pb_deflate_runs) + SAMPLED +
           deflate_bound(SAMPLED);
}

static void deflate_destroy(void *context)
{
    struct deflate *own = context;
    if (own == NULL)
        return;
    libdeflate_free_compressor(own->strings);
    free(own->runs);
    free(own->sample);
    free(own->sample_out);
    free(own);
}

static int deflate_create(int level, size_t block_bytes, void **out_context)
{
    struct deflate *own = calloc(1, sizeof *own);
    (void)block_bytes;
    if (own == NULL)
        return -ENOMEM;
    own->strings = libdeflate_alloc_compressor(abs(level));
    bool ok = own->strings != NULL;
    if (level < 0) {
        own->runs = malloc(sizeof *own->runs);
        own->sample = malloc(SAMPLED);
        own->sample_out = malloc(deflate_bound(SAMPLED));
        ok = ok && own->runs != NULL && own->sample != NULL && own->sample_out != NULL;
    }
    if (!ok) {
        deflate_destroy(own);
        return -ENOMEM;
    }
    *out_context = own;
    return 0;
}

static bool has_strings(const struct deflate *own, const uint8_t *in, size_t bytes)
{
    if (bytes <= SAMPLED)
        return true;
    for (size_t i = 0; i < SAMPLES; i++)
        memcpy(own->sample + i * SAMPLE_BYTES, in + i * ((bytes - SAMPLE_BYTES) / (SAMPLES - 1)),
               SAMPLE_BYTES);
    size_t runs = pb_deflate_runs(own->runs, own->sample, SAMPLED, own->sample_out);
    size_t strings = libdeflate_deflate_compress(own->strings, own->sample, SAMPLED,
                                                 own->sample_out, deflate_bound(SAMPLED));
    return strings * 100 < runs * (100 - GAIN_PERCENT);
}

/* zlib's framing: two bytes before, Adler-32 behind, most significant byte first. */
static size_t encode_runs(const struct deflate *own, const uint8_t *in, size_t bytes, uint8_t *out)
{
    out[0] = 0x78;
    out[1] = 0x01;
    size_t n = 2 + pb_deflate_runs(own->runs, in, bytes, out + 2);
    uint32_t sum = libdeflate_adler32(1, in, bytes);
    for (int i = 0; i < 4; i++)
        out[n++] = (uint8_t)(sum >> (24 - 8 * i));
    return n;
}

static int deflate_encode(void *context, const void *in, size_t bytes, void *out, size_t capacity,
                          size_t *out_bytes)
{
    const struct deflate *own = context;
    if (capacity < deflate_bound(bytes))
        return -EIO;
    size_t n = own->runs != NULL && !has_strings(own, in, bytes)
                   ? encode_runs(own, in, bytes, out)
                   : libdeflate_zlib_compress(own->strings, in, bytes, out, capacity);
    if (n == 0)
        return -EIO;
    *out_bytes = n;
    return 0;
}

const struct pb_codec pb_codec_deflate = {
    .name = "deflate",
    .tiff_compression = 8,
    .min_level = 1,
    .max_level = 12,
    .default_level = -6,
    .default_float_level = -1,
    .bound = deflate_bound,
    .context_bytes = deflate_context_bytes,
    .create = deflate_create,
    .encode = deflate_encode,
    .destroy = deflate_destroy,
};
