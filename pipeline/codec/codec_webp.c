/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* WebP, each block a separate picture (TIFF compression 50001, libtiff's). Level 100 is lossless
 * and keeps the colours of transparent pixels; below that, only alpha is lossless. One thread and
 * fixed settings: the same pixels give the same bytes. libwebp allocates its working memory while
 * it encodes. */
#include "pipeline/codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <webp/encode.h>

enum { LOSSLESS = 100, METHOD = 4 };

struct webp_context {
    WebPConfig config;
    int32_t side_px;
    uint32_t n_bands;
};

/* Output buffer of the writer. */
struct room {
    uint8_t *at;
    size_t left;
};

static size_t webp_bound(size_t bytes)
{
    /* Lossless output of noise is a little longer than its input. */
    return bytes + bytes / 2 + 4096;
}

static uint64_t webp_context_bytes(int level, const struct pb_codec_blocks *blocks)
{
    (void)level;
    /* Measured with libwebp 1.2.4, noise and ramps, blocks of 64 to 4096 px: less than this. */
    return sizeof(struct webp_context) + 12 * (uint64_t)blocks->bytes + (8u << 20);
}

static int webp_create(int level, const struct pb_codec_blocks *blocks, void **out_context)
{
    struct webp_context *own = calloc(1, sizeof *own);
    (void)blocks;
    if (own == NULL)
        return -ENOMEM;
    if (!WebPConfigPreset(&own->config, WEBP_PRESET_PHOTO, (float)level)) {
        free(own);
        return -ENOMEM;
    }
    own->config.method = METHOD;
    own->config.thread_level = 0;
    own->config.alpha_quality = LOSSLESS;
    own->config.lossless = own->config.exact = level == LOSSLESS;
    *out_context = own;
    return 0;
}

static int webp_shape(void *context, int32_t side_px, uint32_t n_bands)
{
    struct webp_context *own = context;
    own->side_px = side_px;
    own->n_bands = n_bands;
    return 0;
}

static int on_write(const uint8_t *data, size_t bytes, const WebPPicture *picture)
{
    struct room *room = picture->custom_ptr;
    if (bytes > room->left)
        return 0;
    memcpy(room->at, data, bytes);
    room->at += bytes;
    room->left -= bytes;
    return 1;
}

static int webp_encode(void *context, const void *in, size_t bytes, void *out, size_t capacity,
                       size_t *out_bytes)
{
    const struct webp_context *own = context;
    const int row_bytes = own->side_px * (int)own->n_bands;
    struct room room = {out, capacity};
    WebPPicture picture;
    if (bytes != (size_t)row_bytes * (size_t)own->side_px || !WebPPictureInit(&picture))
        return -EIO;
    picture.use_argb = own->config.lossless;
    picture.width = picture.height = own->side_px;
    picture.writer = on_write;
    picture.custom_ptr = &room;
    bool good = (own->n_bands == 4 ? WebPPictureImportRGBA(&picture, in, row_bytes)
                                   : WebPPictureImportRGB(&picture, in, row_bytes)) &&
                WebPEncode(&own->config, &picture);
    WebPPictureFree(&picture);
    if (!good)
        return -EIO;
    *out_bytes = capacity - room.left;
    return 0;
}

static void webp_destroy(void *context)
{
    free(context);
}

const struct pb_codec pb_codec_webp = {
    .name = "webp",
    .tiff_compression = 50001,
    .bands = 1u << 3 | 1u << 4,
    .min_level = 1,
    .max_level = LOSSLESS,
    .default_level = 75, /* same as in GDAL */
    .bound = webp_bound,
    .context_bytes = webp_context_bytes,
    .create = webp_create,
    .shape = webp_shape,
    .encode = webp_encode,
    .destroy = webp_destroy,
};
