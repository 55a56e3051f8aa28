/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The table of codecs, and "none". */
#include "pipeline/codec/codec.h"

#include <errno.h>

static size_t none_bound(size_t bytes)
{
    return bytes;
}

static uint64_t none_context_bytes(int level, const struct pb_codec_blocks *blocks)
{
    (void)level;
    (void)blocks;
    return 0;
}

static int none_create(int level, const struct pb_codec_blocks *blocks, void **out_context)
{
    (void)level;
    (void)blocks;
    *out_context = NULL;
    return 0;
}

static void none_destroy(void *context)
{
    (void)context;
}

const struct pb_codec pb_codec_none = {
    .name = "none",
    .tiff_compression = 1,
    .bound = none_bound,
    .context_bytes = none_context_bytes,
    .create = none_create,
    .encode = NULL,
    .destroy = none_destroy,
};

const struct pb_codec *pb_codec_of(enum pb_compress compress)
{
    static const struct pb_codec *const codecs[] = {
        [PB_COMPRESS_NONE] = &pb_codec_none, [PB_COMPRESS_DEFLATE] = &pb_codec_deflate,
        [PB_COMPRESS_ZSTD] = &pb_codec_zstd, [PB_COMPRESS_LZW] = &pb_codec_lzw,
        [PB_COMPRESS_JPEG] = &pb_codec_jpeg, [PB_COMPRESS_WEBP] = &pb_codec_webp,
    };
    return codecs[compress];
}

int pb_codec_level(const struct pb_codec *codec, int level, bool floats, int *out_level)
{
    if (level == 0)
        level = floats ? codec->default_float_level : codec->default_level;
    else if (level < codec->min_level || level > codec->max_level)
        return -EINVAL;
    *out_level = level;
    return 0;
}
