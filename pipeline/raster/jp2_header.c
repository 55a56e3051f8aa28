/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/jp2_header.h"

#include "config/limits_config.h"
#include "pipeline/raster/raster_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BOXES_MAX      4096
#define TILE_PARTS_MAX (UINT32_C(1) << 20)
#define COMPONENTS_MAX 16384

enum { SOC = 0xff4f, SIZ = 0xff51, SOT = 0xff90, EOC = 0xffd9 };

struct jp2 {
    struct pb_file_part part;
    const char *name;
    const struct pb_limits *limits;
    struct pb_err *err;
};

#define FAIL(jp2, code, ...) pb_fail_at((jp2)->err, code, (jp2)->name, 0, 0, __VA_ARGS__)

static uint32_t u16(const unsigned char *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t u32(const unsigned char *p)
{
    return u16(p) << 16 | u16(p + 2);
}

static uint64_t u64(const unsigned char *p)
{
    return (uint64_t)u32(p) << 32 | u32(p + 4);
}

static int take(const struct jp2 *jp2, uint64_t at, unsigned char *out, size_t n)
{
    ssize_t got = pb_file_part_read(&jp2->part, at, out, n, NULL);
    if (got < 0)
        return pb_raster_file_fail(jp2->err, (int)-got, jp2->name, "cannot read it");
    if ((size_t)got < n)
        return FAIL(jp2, PB_E_INPUT_TRUNCATED,
                    "the file ends at byte %llu, in the middle of what its JPEG 2000 structure "
                    "promises",
                    (unsigned long long)jp2->part.bytes);
    return 0;
}

static const unsigned char signature[12] = {0,   0,   0,    12,   'j',  'P',
                                            ' ', ' ', 0x0d, 0x0a, 0x87, 0x0a};

static bool is_codestream(const unsigned char *p)
{
    return u16(p) == SOC && u16(p + 2) == SIZ;
}

int pb_jp2_look(const struct pb_file_part *part, const char *name, struct pb_err *err, bool *out_is)
{
    unsigned char head[12] = {0};
    ssize_t got = pb_file_part_read(part, 0, head, sizeof head, NULL);
    if (got < 0)
        return pb_raster_file_fail(err, (int)-got, name, "cannot read it");
    *out_is = got == (ssize_t)sizeof head &&
              (memcmp(head, signature, sizeof head) == 0 || is_codestream(head));
    return 0;
}

/* --- boxes -----------------------------------------------------------------------------------*/

/* Finds the range of the codestream. */
static int find_codestream(const struct jp2 *jp2, uint64_t *out_at, uint64_t *out_end)
{
    unsigned char head[16] = {0};
    uint64_t at = 0;
    int rc = take(jp2, 0, head, 12);
    if (rc == 0 && is_codestream(head)) {
        *out_at = 0;
        *out_end = jp2->part.bytes;
        return 0;
    }
    for (int i = 0; rc == 0 && i < BOXES_MAX; i++) {
        if (at == jp2->part.bytes)
            return FAIL(jp2, PB_E_INPUT_TRUNCATED, "the file has no codestream");
        rc = take(jp2, at, head, 8);
        uint64_t length = rc == 0 ? u32(head) : 0, header = 8;
        if (rc == 0 && length == 1 && (rc = take(jp2, at, head, 16)) == 0) {
            length = u64(head + 8);
            header = 16;
        }
        if (rc < 0)
            return rc;
        uint64_t end = length == 0 ? jp2->part.bytes : at + length;
        if ((length != 0 && length < header) || end < at)
            return FAIL(jp2, PB_E_INPUT_DAMAGED, "the box at byte %llu has an impossible length",
                        (unsigned long long)at);
        if (end > jp2->part.bytes)
            return FAIL(jp2, PB_E_INPUT_TRUNCATED,
                        "the box at byte %llu ends at byte %llu, and the file at %llu",
                        (unsigned long long)at, (unsigned long long)end,
                        (unsigned long long)jp2->part.bytes);
        if (memcmp(head + 4, "jp2c", 4) == 0) {
            *out_at = at + header;
            *out_end = end;
            return 0;
        }
        at = end;
    }
    return rc ? rc
              : FAIL(jp2, PB_E_INPUT_LIMIT, "the file has more than %d boxes before its codestream",
                     BOXES_MAX);
}

/* --- the codestream --------------------------------------------------------------------------*/

static int check_image(const struct jp2 *jp2, const struct pb_tiff_header *h)
{
    const struct pb_limits *limits = jp2->limits;
    const uint64_t pixels = (uint64_t)h->width * (uint64_t)h->height;
    const uint64_t sample = h->bits > 16 ? 4 : h->bits > 8 ? 2 : 1;
    const uint64_t block = (uint64_t)h->block_w * h->block_h * sample * (uint64_t)h->bands;
    if (h->width > limits->max_side_px || h->height > limits->max_side_px ||
        pixels > limits->max_pixels)
        return FAIL(jp2, PB_E_INPUT_LIMIT,
                    "%d x %d pixels are more than the limits allow (limits.max_side_px, "
                    "limits.max_pixels)",
                    (int)h->width, (int)h->height);
    if (h->bands > limits->max_bands)
        return FAIL(jp2, PB_E_INPUT_LIMIT,
                    "the file has %d bands; at most %d are taken (limits.max_bands)", (int)h->bands,
                    (int)limits->max_bands);
    if (block > limits->max_block_bytes)
        return FAIL(jp2, PB_E_INPUT_LIMIT,
                    "a tile of %u x %u pixels of %d bands is larger than %llu bytes when decoded "
                    "(limits.max_block_bytes)",
                    h->block_w, h->block_h, (int)h->bands,
                    (unsigned long long)limits->max_block_bytes);
    const uint64_t decoded = pixels * sample * (uint64_t)h->bands;
    if (limits->max_ratio > 0 && decoded > PB_TIFF_RATIO_FLOOR &&
        decoded / limits->max_ratio > jp2->part.bytes)
        return FAIL(jp2, PB_E_INPUT_LIMIT,
                    "%llu bytes of pixels from a file of %llu are more than limits.max_ratio "
                    "allows",
                    (unsigned long long)decoded, (unsigned long long)jp2->part.bytes);
    return 0;
}

/* Reads the SIZ marker segment, which follows SOC. */
static int read_size(const struct jp2 *jp2, uint64_t at, struct pb_tiff_header *out)
{
    unsigned char p[43] = {0};
    int rc = take(jp2, at, p, sizeof p);
    if (rc < 0)
        return rc;
    if (!is_codestream(p))
        return FAIL(jp2, PB_E_INPUT_DAMAGED, "its codestream does not begin with SOC and SIZ");
    const uint64_t x1 = u32(p + 8), y1 = u32(p + 12), x0 = u32(p + 16), y0 = u32(p + 20);
    const uint64_t tile_w = u32(p + 24), tile_h = u32(p + 28), tile_x = u32(p + 32),
                   tile_y = u32(p + 36);
    const uint32_t n = u16(p + 40);
    if (x1 <= x0 || y1 <= y0 || x1 - x0 > INT32_MAX || y1 - y0 > INT32_MAX || tile_w == 0 ||
        tile_h == 0 || tile_x > x0 || tile_y > y0 || n == 0 || n > COMPONENTS_MAX ||
        u16(p + 4) != 38 + 3 * n)
        return FAIL(jp2, PB_E_INPUT_DAMAGED, "its header (SIZ) declares an impossible image");
    out->width = (int32_t)(x1 - x0);
    out->height = (int32_t)(y1 - y0);
    out->bands = (int32_t)n;
    out->bits = (p[42] & 0x7fu) + 1;
    out->tiled = true;
    out->block_w = (uint32_t)(tile_w < x1 - x0 ? tile_w : x1 - x0);
    out->block_h = (uint32_t)(tile_h < y1 - y0 ? tile_h : y1 - y0);
    out->n_blocks = ((x1 - tile_x + tile_w - 1) / tile_w) * ((y1 - tile_y + tile_h - 1) / tile_h);
    if (out->bits > 32)
        return FAIL(jp2, PB_E_INPUT_UNSUPPORTED, "its samples have %u bits", out->bits);
    return check_image(jp2, out);
}

/* Skips the marker segments of the main header up to the first tile-part. */
static int find_tile_parts(const struct jp2 *jp2, uint64_t *at, uint64_t end)
{
    unsigned char p[4] = {0};
    for (*at += 2; *at + 4 <= end;) {
        int rc = take(jp2, *at, p, 4);
        if (rc < 0 || u16(p) == SOT)
            return rc;
        if (u16(p) < 0xff01 || u16(p + 2) < 2)
            break;
        *at += 2 + u16(p + 2);
    }
    return FAIL(jp2, PB_E_INPUT_DAMAGED, "its codestream has no tiles");
}

/* Checks that tile-parts follow one another, each with its declared length, and that EOC follows
 * the last one. */
static int check_tile_parts(const struct jp2 *jp2, uint64_t at, uint64_t end,
                            struct pb_tiff_header *out)
{
    unsigned char p[12] = {0};
    for (uint32_t i = 0; i < TILE_PARTS_MAX; i++) {
        int rc = take(jp2, at, p, 2);
        if (rc == 0 && u16(p) == EOC)
            return 0;
        rc = rc ? rc : take(jp2, at, p, sizeof p);
        if (rc < 0)
            return rc;
        uint64_t length = u32(p + 6);
        if (u16(p) != SOT || u16(p + 2) != 10 || u16(p + 4) >= out->n_blocks ||
            (length != 0 && length < 14))
            return FAIL(jp2, PB_E_INPUT_DAMAGED, "there is no tile at byte %llu of its codestream",
                        (unsigned long long)at);
        if (length == 0) /* 0 = up to the end */
            length = end > at + 2 ? end - 2 - at : 0;
        if (length > out->stored_block_max)
            out->stored_block_max = length;
        at += length;
        if (at + 2 > end)
            return FAIL(jp2, PB_E_INPUT_TRUNCATED,
                        "tile %u ends at byte %llu, after the end of the codestream at %llu",
                        u16(p + 4), (unsigned long long)at, (unsigned long long)end);
    }
    return FAIL(jp2, PB_E_INPUT_LIMIT, "its codestream has more than %u parts of tiles",
                TILE_PARTS_MAX);
}

int pb_jp2_header_read(const struct pb_file_part *part, const char *name,
                       const struct pb_limits *limits, struct pb_err *err,
                       struct pb_tiff_header *out_header)
{
    const struct jp2 jp2 = {*part, name, limits, err};
    struct pb_tiff_header header = {.n_directories = 1};
    uint64_t at = 0, end = 0;
    int rc = find_codestream(&jp2, &at, &end);
    rc = rc ? rc : read_size(&jp2, at, &header);
    rc = rc ? rc : find_tile_parts(&jp2, &at, end);
    rc = rc ? rc : check_tile_parts(&jp2, at, end, &header);
    if (rc == 0)
        *out_header = header;
    return rc;
}
