/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RANDOM_TILE_H
#define PB_RANDOM_TILE_H
/* Tiles of awkward shape for tests: any type, odd sizes, rows and planes that are padded, a mask
 * whose rows are padded too,
 * samples equal to nodata, NaN and infinities in floats. The samples of a tile follow from its seed
 * and the pixel's place in the image, so two tiles of one image agree where they overlap. */
#include "kernels/view.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TILE_NODATA 7

struct random_image {
    uint32_t seed;
    enum pb_type type;
    int32_t w, h;
    bool masked;
};

/* A window of an image, and its memory. */
struct random_window {
    struct pb_window window;
    unsigned char *data;
    size_t bytes;
    uint8_t *mask; /* or NULL */
    size_t mask_bytes;
};

struct random_tile {
    struct pb_tile_in in;
    struct random_window source[PB_SOURCES_MAX]; /* for in.window; zeroed where nothing is read */
};

static inline uint32_t tile_hash(uint32_t seed, uint32_t plane, int32_t x, int32_t y)
{
    uint32_t h = seed * 0x9e3779b1u ^ plane * 0x85ebca6bu ^ (uint32_t)x * 0xc2b2ae35u ^
                 (uint32_t)y * 0x27d4eb2fu;

    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return h ^ h >> 15;
}

static inline size_t tile_type_bytes(enum pb_type type)
{
    return type == PB_U8 ? 1 : type == PB_I16 || type == PB_U16 ? 2 : type == PB_F64 ? 8 : 4;
}

/* The sample of a pixel as float64; every tenth is TILE_NODATA. */
static inline double tile_sample(const struct random_image *image, uint32_t plane, int32_t x,
                                 int32_t y)
{
    const uint32_t h = tile_hash(image->seed, plane, x, y);

    if (h % 10 == 0)
        return TILE_NODATA;
    switch (image->type) {
    case PB_U8:
        return (double)(h >> 8 & 0xff);
    case PB_U16:
        return (double)(h >> 8 & 0xffff);
    case PB_I16:
        return (double)(h >> 8 & 0xffff) - 32768.0;
    case PB_I32:
        return (double)(int32_t)(h ^ h << 13);
    case PB_U32:
        return (double)(h ^ h << 13);
    default:
        if (h % 97 == 1)
            return h % 2 ? (double)NAN : (double)INFINITY;
        return ((double)(h >> 8) - 8388608.0) / (image->type == PB_F32 ? 65536.0 : 65537.0);
    }
}

static inline bool tile_valid(const struct random_image *image, int32_t x, int32_t y)
{
    return !image->masked || tile_hash(image->seed + 1, 99, x, y) % 8 != 0;
}

static inline void tile_put(unsigned char *at, enum pb_type type, double v)
{
#define PUT(ctype)                                                                                 \
    do {                                                                                           \
        const ctype sample = (ctype)v;                                                             \
        memcpy(at, &sample, sizeof sample);                                                        \
    } while (0)
    switch (type) {
    case PB_U8:
        PUT(uint8_t);
        break;
    case PB_I16:
        PUT(int16_t);
        break;
    case PB_U16:
        PUT(uint16_t);
        break;
    case PB_I32:
        PUT(int32_t);
        break;
    case PB_U32:
        PUT(uint32_t);
        break;
    case PB_F32:
        PUT(float);
        break;
    default:
        PUT(double);
        break;
    }
#undef PUT
}

static inline int32_t tile_low(int32_t v)
{
    return v > 0 ? v : 0;
}

/* The pixels `read` of an image. bands[i]: the image's band in plane i. */
static inline bool random_window_make(const struct random_image *image, const struct pb_rect *read,
                                      const uint32_t *bands, size_t n_bands, size_t pad_px,
                                      struct random_window *out)
{
    const size_t sample = tile_type_bytes(image->type);
    const size_t row_bytes = ((size_t)read->w + pad_px) * sample;
    const size_t mask_row_bytes = (size_t)read->w + pad_px;
    const size_t plane_bytes = row_bytes * (size_t)read->h + pad_px * sample;
    /* No byte more than the last sample: a sanitizer finds reads past it. */
    const size_t bytes =
        plane_bytes * (n_bands - 1) + row_bytes * (size_t)(read->h - 1) + (size_t)read->w * sample;

    *out = (struct random_window){
        .bytes = bytes, .mask_bytes = mask_row_bytes * (size_t)(read->h - 1) + (size_t)read->w};
    out->data = malloc(bytes);
    out->mask = image->masked ? calloc(out->mask_bytes, 1) : NULL;
    if (!out->data || (image->masked && !out->mask))
        return false;
    memset(out->data, 0xff, bytes);
    for (size_t p = 0; p < n_bands; p++)
        for (int32_t y = 0; y < read->h; y++)
            for (int32_t x = 0; x < read->w; x++) {
                tile_put(out->data + p * plane_bytes + (size_t)y * row_bytes + (size_t)x * sample,
                         image->type, tile_sample(image, bands[p], read->x + x, read->y + y));
                if (out->mask)
                    out->mask[(size_t)y * mask_row_bytes + (size_t)x] =
                        tile_valid(image, read->x + x, read->y + y) ? 255 : 0;
            }
    out->window = (struct pb_window){.data = out->data,
                                     .row_bytes = row_bytes,
                                     .plane_bytes = plane_bytes,
                                     .mask = out->mask,
                                     .mask_row_bytes = mask_row_bytes,
                                     .rect = *read};
    return true;
}

/* A tile of `core` that reads `reach` pixels around it. */
static inline bool random_tile_make(const struct random_image *image, const struct pb_rect *core,
                                    int32_t reach, const uint32_t *bands, size_t n_bands,
                                    size_t pad_px, struct random_tile *out)
{
    const int32_t x0 = tile_low(core->x - reach), y0 = tile_low(core->y - reach);
    const int32_t x1 = core->x + core->w + reach, y1 = core->y + core->h + reach;
    const struct pb_rect read = {x0, y0, (x1 < image->w ? x1 : image->w) - x0,
                                 (y1 < image->h ? y1 : image->h) - y0};

    *out = (struct random_tile){.in = {.core = *core, .image_w = image->w, .image_h = image->h}};
    if (!random_window_make(image, &read, bands, n_bands, pad_px, &out->source[0]))
        return false;
    out->in.window[0] = out->source[0].window;
    return true;
}

static inline void random_tile_free(struct random_tile *tile)
{
    for (size_t i = 0; i < PB_SOURCES_MAX; i++) {
        free(tile->source[i].data);
        free(tile->source[i].mask);
    }
}
#endif
