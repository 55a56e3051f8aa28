/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CODEC_H
#define PB_CODEC_H
/* Compression of one block. A codec is a table of functions; its working memory is a context, one a
 * thread, made before the first block: encode allocates nothing, but for codecs of pictures, whose
 * libraries do. The output of encode depends on
 * its input and the level only. */
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_codec {
    const char *name;
    uint16_t tiff_compression; /* value of tag 259 */
    /* Codecs of pictures alone, of uint8, which need not come back as they were: bit n is set for n
     * bands that they take. 0: any bytes, which come back. */
    uint32_t bands;
    int min_level, max_level; /* 0 when the codec has no levels */
    /* The meaning of level 0 for blocks of integers and of floats; a number outside the limits is a
     * mode of the codec. */
    int default_level, default_float_level;
    /* Most bytes encode() can make of `bytes`. */
    size_t (*bound)(size_t bytes);
    /* Bytes a context holds (an upper bound), for blocks of block_bytes. */
    uint64_t (*context_bytes)(int level, size_t block_bytes);
    /* level as pb_codec_level gives it. 0 or -ENOMEM. Thread: init. */
    int (*create)(int level, size_t block_bytes, void **out_context);
    /* Of a codec of pictures, once after create: the block is side_px x side_px pixels of n_bands
     * samples, row by row. 0 or -ENOMEM. NULL in others. */
    int (*shape)(void *context, int32_t side_px, uint32_t n_bands);
    /* What all blocks share and none holds, for tag 347 (JPEGTables). NULL = nothing. */
    int (*tables)(int level, uint32_t n_bands, void *out, size_t capacity, size_t *out_bytes);
    /* bytes <= block_bytes; capacity >= bound(bytes). Returns 0 and the size, or -EIO. NULL in the
     * codec "none", whose blocks are stored as they are. Thread: the context's one user. */
    int (*encode)(void *context, const void *in, size_t bytes, void *out, size_t capacity,
                  size_t *out_bytes);
    void (*destroy)(void *context); /* NULL is fine */
    /* Whether all readers of TIFF take a block that decoders (decode.h) do; NULL = always. Pure. */
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
/* The level that is used when the config says `level`: 0 is the codec's default for the kind of
 * samples. -EINVAL when the codec has no such level. */
int pb_codec_level(const struct pb_codec *codec, int level, bool floats, int *out_level);
#endif
