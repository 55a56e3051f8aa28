/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the encoders of blocks without loss: libdeflate or zstd decode each output to the input, a
 * second context makes the same output, and all outputs are within their bound. The first bytes of
 * an input select the codec, its level, the layout of rows and the noise that is added when the
 * other bytes are repeated until the block is full. */
#include "pipeline/codec/codec.h"
#include "tests/fuzz/fuzz_check.h"

#include <string.h>

#include <libdeflate.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { HEAD = 5, CONTEXTS = 2, ROW_UNIT = 16 };

struct block {
    const struct pb_codec *codec;
    struct pb_codec_blocks blocks;
    int level;
    uint8_t *in; /* exactly blocks.bytes: the sanitizer reports a read after its end */
};

/* 0 is the default of integers or floats, other levels are explicit. */
static int level_of(const struct pb_codec *codec, unsigned n)
{
    const int span = codec->max_level < 12 ? codec->max_level : 12, level = (int)n % (span + 2);
    return level == 0          ? codec->default_level
           : level == span + 1 ? codec->default_float_level
                               : level;
}

static struct block block_of(const uint8_t *data, size_t bytes)
{
    static const uint32_t planes[] = {0, 4, 8, 4};
    struct block b = {.codec = data[0] & 1 ? &pb_codec_zstd : &pb_codec_deflate};
    const uint32_t rows = 1 + data[3] % 96;
    uint32_t seed = data[4];
    b.level = level_of(b.codec, data[0] >> 1);
    b.blocks.planes = planes[data[1] & 3];
    b.blocks.row_bytes = (size_t)ROW_UNIT * (1 + data[2]);
    b.blocks.bytes = b.blocks.row_bytes * rows;
    b.blocks.sample_bytes = data[1] >> 6;
    if (b.blocks.planes == 0)
        b.blocks.bytes -= data[1] >> 2 & 15; /* less than a row */
    b.in = malloc(b.blocks.bytes);
    require(b.in != NULL, "memory");
    for (size_t i = 0; i < b.blocks.bytes; i++) {
        seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
        b.in[i] = (uint8_t)(data[HEAD + i % (bytes - HEAD)] ^ (seed >> 24 & data[4]));
    }
    return b;
}

static void check_decoded(const struct block *b, const uint8_t *out, size_t n)
{
    uint8_t *back = malloc(b->blocks.bytes);
    size_t made = 0;
    require(back != NULL, "memory");
    if (b->codec == &pb_codec_zstd) {
        made = ZSTD_decompress(back, b->blocks.bytes, out, n);
    } else {
        struct libdeflate_decompressor *one = libdeflate_alloc_decompressor();
        require(one != NULL, "memory");
        require(libdeflate_zlib_decompress(one, out, n, back, b->blocks.bytes, &made) ==
                    LIBDEFLATE_SUCCESS,
                "no stream");
        libdeflate_free_decompressor(one);
    }
    require(made == b->blocks.bytes && memcmp(back, b->in, made) == 0, "other bytes");
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes <= HEAD)
        return 0;
    const struct block b = block_of(data, bytes);
    const size_t bound = b.codec->bound(b.blocks.bytes);
    uint8_t *out[CONTEXTS];
    size_t n[CONTEXTS];
    for (int i = 0; i < CONTEXTS; i++) {
        void *context = NULL;
        out[i] = malloc(bound); /* exact: the sanitizer reports a write after its end */
        require(out[i] != NULL, "memory");
        require(b.codec->create(b.level, &b.blocks, &context) == 0, "memory");
        require(b.codec->encode(context, b.in, b.blocks.bytes, out[i], bound, &n[i]) == 0,
                "an error");
        b.codec->destroy(context);
        require(n[i] <= bound, "the bound");
        check_decoded(&b, out[i], n[i]);
    }
    require(n[0] == n[1] && memcmp(out[0], out[1], n[0]) == 0, "another output");
    for (int i = 0; i < CONTEXTS; i++)
        free(out[i]);
    free(b.in);
    return 0;
}
