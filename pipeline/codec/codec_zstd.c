/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Zstandard frames. The context is in one allocation of known size ("static" contexts of zstd's
 * advanced interface), so that it can be planned for and encode cannot allocate. Default levels: 9,
 * like GDAL, for integers; 1 for floats, which are only 1 percent smaller with 9 and take five
 * times as long. */
#define ZSTD_STATIC_LINKING_ONLY
#include "pipeline/codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

struct zstd_context {
    ZSTD_CCtx *zstd; /* inside `memory` */
    int level;
    _Alignas(16) unsigned char memory[];
};

static size_t zstd_bound(size_t bytes)
{
    return ZSTD_compressBound(bytes);
}

static uint64_t zstd_context_bytes(int level, const struct pb_codec_blocks *blocks)
{
    return sizeof(struct zstd_context) +
           ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, blocks->bytes, 0));
}

static int zstd_create(int level, const struct pb_codec_blocks *blocks, void **out_context)
{
    size_t bytes = (size_t)zstd_context_bytes(level, blocks);
    struct zstd_context *context = malloc(bytes);
    if (context == NULL)
        return -ENOMEM;
    context->level = level;
    context->zstd = ZSTD_initStaticCCtx(context->memory, bytes - sizeof *context);
    if (context->zstd == NULL) {
        free(context);
        return -ENOMEM;
    }
    *out_context = context;
    return 0;
}

static int zstd_encode(void *context, const void *in, size_t bytes, void *out, size_t capacity,
                       size_t *out_bytes)
{
    struct zstd_context *own = context;
    size_t n = ZSTD_compressCCtx(own->zstd, out, capacity, in, bytes, own->level);
    if (ZSTD_isError(n))
        return -EIO;
    *out_bytes = n;
    return 0;
}

static void zstd_destroy(void *context)
{
    free(context);
}

/* True for one frame with a window that other decoders allocate: libtiff accepts no second frame,
 * and zstd limits the window to 128 MiB by default. */
static bool zstd_is_common(const void *block, size_t bytes)
{
    enum { SINGLE_SEGMENT = 0x20, WINDOW_LOG_MIN = 10, WINDOW_LOG_MAX = 27 };
    const uint8_t *frame = block; /* a magic number, a descriptor, and the window's descriptor */
    return bytes > 5 && ZSTD_findFrameCompressedSize(block, bytes) == bytes &&
           (frame[4] & SINGLE_SEGMENT || WINDOW_LOG_MIN + (frame[5] >> 3) <= WINDOW_LOG_MAX);
}

const struct pb_codec pb_codec_zstd = {
    .name = "zstd",
    .tiff_compression = 50000,
    .min_level = 1,
    .max_level = 22,
    .default_level = 9,
    .default_float_level = 1,
    .bound = zstd_bound,
    .context_bytes = zstd_context_bytes,
    .create = zstd_create,
    .encode = zstd_encode,
    .destroy = zstd_destroy,
    .is_common = zstd_is_common,
};
