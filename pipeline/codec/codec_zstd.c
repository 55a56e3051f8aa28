/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Zstandard frames. The context lives in one allocation of known size ("static" contexts of zstd's
 * advanced interface), so that it can be planned for and encode cannot allocate. Default levels: 9,
 * as GDAL, for integers; floats gain 1 percent by it and take five times as long, so they get 1. */
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

static uint64_t zstd_context_bytes(int level, size_t block_bytes)
{
    return sizeof(struct zstd_context) +
           ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, block_bytes, 0));
}

static int zstd_create(int level, size_t block_bytes, void **out_context)
{
    size_t bytes = (size_t)zstd_context_bytes(level, block_bytes);
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
};
