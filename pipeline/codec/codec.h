/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CODEC_H
#define PB_CODEC_H
/* Compression of one block. A codec is a table of functions; its working memory is a context, one a
 * thread, made before the first block: encode allocates nothing, except in codecs of pictures,
 * whose libraries allocate. The output of encode depends on its input and the level only. */
#include "config/product_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The blocks that a context encodes. */
struct pb_codec_blocks {
    size_t bytes; /* size of the largest block */
    /* Count of byte planes in each row after TIFF's predictor 3: planes of equal size, the plane of
     * the most significant bytes first. 0 = the bytes have another order. */
    uint32_t planes;
    size_t row_bytes;    /* size of such a row; a block has whole rows */
    size_t sample_bytes; /* size of a sample; 0 = unknown */
};

struct pb_codec {
    const char *name;
    uint16_t tiff_compression; /* value of tag 259 */
    /* For lossy codecs of pictures, which take only uint8: bit n is set if n bands are
     * possible. 0: the codec takes any bytes, without loss. */
    uint32_t bands;
    int min_level, max_level; /* 0 when the codec has no levels */
    /* The level that 0 selects for blocks of integers and of floats; a number outside the limits is
     * a mode of the codec. */
    int default_level, default_float_level;
    /* Largest size of the output of encode() for `bytes` bytes. */
    size_t (*bound)(size_t bytes);
    /* Upper bound of a context's memory in bytes. */
    uint64_t (*context_bytes)(int level, const struct pb_codec_blocks *blocks);
    /* level: result of pb_codec_level. 0 or -ENOMEM. Thread: init. */
    int (*create)(int level, const struct pb_codec_blocks *blocks, void **out_context);
    /* Codec of pictures: called once after create; the block is side_px x side_px pixels of n_bands
     * samples, row by row. 0 or -ENOMEM. NULL in other codecs. */
    int (*shape)(void *context, int32_t side_px, uint32_t n_bands);
    /* Data that are common to all blocks and in none of them, for tag 347 (JPEGTables). NULL = no
     * data. */
    int (*tables)(int level, uint32_t n_bands, void *out, size_t capacity, size_t *out_bytes);
    /* bytes <= blocks.bytes; capacity >= bound(bytes). Returns 0 and the size, or -EIO. NULL in the
     * codec "none", whose blocks are stored unchanged. Thread: the context's one user. */
    int (*encode)(void *context, const void *in, size_t bytes, void *out, size_t capacity,
                  size_t *out_bytes);
    void (*destroy)(void *context); /* NULL is fine */
    /* True if all readers of TIFF, not only decode.h, accept the block; NULL = always. Pure. */
    bool (*is_common)(const void *block, size_t bytes);
};

extern const struct pb_codec pb_codec_none;
extern const struct pb_codec pb_codec_deflate; /* codec_deflate.c */
extern const struct pb_codec pb_codec_zstd;    /* codec_zstd.c */
extern const struct pb_codec pb_codec_lzw;     /* codec_lzw.c */
extern const struct pb_codec pb_codec_jpeg;    /* codec_jpeg.c */
extern const struct pb_codec pb_codec_webp;    /* codec_webp.c */

#define PB_CODEC_TABLES_MAX 1024 /* bytes of `tables` at most */

const struct pb_codec *pb_codec_of(enum pb_compress compress);
/* Level of the codec for the configured `level`: 0 is the codec's default for the kind of
 * samples. -EINVAL if the codec has no such level. */
int pb_codec_level(const struct pb_codec *codec, int level, bool floats, int *out_level);
#endif
