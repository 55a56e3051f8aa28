/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The chunks are written here because libpng compresses with zlib, whose level 6 takes fifty
 * times as long as the encoder of codec/deflate_runs.h for files of the same size: filtered
 * pictures have few repeated strings. Rows are filtered into a part of the stream; a full part
 * becomes an IDAT chunk, therefore memory does not depend on the height. The filter is always
 * Paeth: it suits pictures, and the result does not depend on a heuristic. Source: PNG
 * specification, third edition (W3C, 2025). */
#include "pipeline/product/quicklook/png.h"

#include "kernels/pixel.h"
#include "pipeline/codec/deflate_runs.h"
#include "pipeline/io/file_out.h"

#include <libdeflate.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH = 8,
    GREY_ALPHA = 4, /* colour types */
    RGB_ALPHA = 6,
    PAETH = 4, /* filter type */
    SIDE_MAX = 0x7fffffff,
    PART = PB_DEFLATE_RUNS_CHUNK, /* bytes of the stream in an IDAT chunk */
    ZLIB_HEAD = 2,
    ZLIB_SUM = 4
};

struct encode {
    struct pb_file_out *out;
    struct pb_err *err;
    size_t row_bytes, pixel_bytes;
    uint8_t *row, *above; /* each after a pixel of zeros */
    uint8_t *part;        /* filtered rows: up to PART - 1 bytes and one row */
    size_t filled;
    uint8_t *packed; /* data of an IDAT chunk */
    uint32_t sum;    /* Adler-32 of the stream so far */
    bool begun;      /* the stream's head was written */
    struct pb_deflate_runs runs;
};

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* data: n_data pieces that make up the chunk's data. */
struct piece {
    const void *data;
    size_t bytes;
};

static int add_chunk(struct encode *e, const char type[4], const struct piece *pieces, size_t n)
{
    uint8_t head[8], tail[4];
    size_t bytes = 0;
    uint32_t crc = libdeflate_crc32(0, type, 4);
    for (size_t i = 0; i < n; i++) {
        bytes += pieces[i].bytes;
        crc = libdeflate_crc32(crc, pieces[i].data, pieces[i].bytes);
    }
    put_u32(head, (uint32_t)bytes);
    memcpy(head + 4, type, 4);
    put_u32(tail, crc);
    int rc = pb_file_out_add(e->out, head, sizeof head, e->err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = pb_file_out_add(e->out, pieces[i].data, pieces[i].bytes, e->err);
    return rc == 0 ? pb_file_out_add(e->out, tail, sizeof tail, e->err) : rc;
}

static int add_head(struct encode *e, const struct pb_png_options *options)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t head[13] = {[8] = DEPTH, [9] = options->channels == 2 ? GREY_ALPHA : RGB_ALPHA};
    put_u32(head, options->width);
    put_u32(head + 4, options->height);
    int rc = pb_file_out_add(e->out, signature, sizeof signature, e->err);
    return rc == 0 ? add_chunk(e, "IHDR", &(struct piece){head, sizeof head}, 1) : rc;
}

static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            return false;
    return true;
}

static int add_text(struct encode *e, const struct pb_png_text *text)
{
    /* Between key and text: a zero; in iTXt also "not compressed", and empty language and
     * translated key. */
    static const char zeros[5] = {0};
    bool ascii = is_ascii(text->text);
    const struct piece pieces[] = {{text->key, strlen(text->key)},
                                   {zeros, ascii ? 1 : sizeof zeros},
                                   {text->text, strlen(text->text)}};
    return add_chunk(e, ascii ? "tEXt" : "iTXt", pieces, 3);
}

static inline int distance(int a, int b)
{
    return a < b ? b - a : a - b;
}

/* Selects instead of branches, so that it vectorises; 16 bits hold all differences. */
PB_CLONES static void filter_paeth(const uint8_t *restrict row, const uint8_t *restrict above,
                                   size_t n, size_t pixel, uint8_t *restrict out)
{
    const uint8_t *left = row - pixel, *corner = above - pixel;
    for (size_t i = 0; i < n; i++) {
        int16_t a = left[i], b = above[i], c = corner[i];
        int16_t to_a = (int16_t)distance(b, c), to_b = (int16_t)distance(a, c);
        int16_t to_c = (int16_t)distance(a + b, 2 * c);
        int16_t b_or_c = to_b <= to_c ? b : c;
        int16_t nearest = to_a <= to_b && to_a <= to_c ? a : b_or_c;
        out[i] = (uint8_t)(row[i] - nearest);
    }
}

/* Writes the next n bytes of the part as an IDAT chunk. */
static int add_data(struct encode *e, size_t n, bool last)
{
    static const uint8_t head[ZLIB_HEAD] = {0x78, 0x01};
    size_t bytes = 0;
    if (!e->begun) {
        memcpy(e->packed, head, ZLIB_HEAD);
        bytes = ZLIB_HEAD;
        e->begun = true;
    }
    e->sum = libdeflate_adler32(e->sum, e->part, n);
    bytes += pb_deflate_runs_part(&e->runs, e->part, n, last, e->packed + bytes);
    if (last) {
        put_u32(e->packed + bytes, e->sum);
        bytes += ZLIB_SUM;
    }
    e->filled -= n;
    memmove(e->part, e->part + n, e->filled);
    return add_chunk(e, "IDAT", &(struct piece){e->packed, bytes}, 1);
}

static int add_row(struct encode *e, const struct pb_png_options *options, uint32_t y)
{
    int rc = 0;
    options->row(options->user, y, e->row);
    e->part[e->filled++] = PAETH;
    filter_paeth(e->row, e->above, e->row_bytes, e->pixel_bytes, e->part + e->filled);
    e->filled += e->row_bytes;
    uint8_t *done = e->above;
    e->above = e->row;
    e->row = done;
    bool last = y + 1 == options->height;
    while (rc == 0 && e->filled > PART) /* the last part is not empty */
        rc = add_data(e, PART, false);
    return rc == 0 && last ? add_data(e, e->filled, true) : rc;
}

static int add_picture(struct encode *e, const struct pb_png_options *options)
{
    pb_deflate_runs_start(&e->runs);
    e->sum = 1;
    int rc = add_head(e, options);
    for (size_t i = 0; i < options->n_texts && rc == 0; i++)
        rc = add_text(e, &options->texts[i]);
    for (uint32_t y = 0; y < options->height && rc == 0; y++)
        rc = add_row(e, options, y);
    return rc == 0 ? add_chunk(e, "IEND", NULL, 0) : rc;
}

static size_t row_room(uint32_t width, int channels)
{
    return ((size_t)width + 1) * (size_t)channels;
}

static size_t part_room(uint32_t width, int channels)
{
    return PART + 1 + (size_t)width * (size_t)channels;
}

static size_t packed_room(void)
{
    return ZLIB_HEAD + pb_deflate_runs_bound(PART) + ZLIB_SUM;
}

int pb_png_write(struct pb_file_out *out, const struct pb_png_options *options, struct pb_err *err)
{
    const uint32_t w = options->width, h = options->height;
    const size_t pixel = (size_t)options->channels;
    if (options->channels != 2 && options->channels != 4)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "a PNG has 2 or 4 channels, not %d",
                       options->channels);
    if (w == 0 || h == 0 || w > SIDE_MAX || h > SIDE_MAX)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "a PNG has 1 to %d pixels a side, not %u x %u",
                       SIDE_MAX, w, h);
    struct encode *e = calloc(1, sizeof *e);
    uint8_t *rows[2] = {calloc(1, row_room(w, options->channels)),
                        calloc(1, row_room(w, options->channels))};
    uint8_t *part = malloc(part_room(w, options->channels)), *packed = malloc(packed_room());
    int rc;
    if (e == NULL || rows[0] == NULL || rows[1] == NULL || part == NULL || packed == NULL) {
        rc = pb_fail(err, PB_E_MEMORY, "no memory to write a PNG");
    } else {
        e->out = out;
        e->err = err;
        e->row_bytes = (size_t)w * pixel;
        e->pixel_bytes = pixel;
        e->row = rows[0] + pixel;
        e->above = rows[1] + pixel;
        e->part = part;
        e->packed = packed;
        rc = add_picture(e, options);
    }
    free(packed);
    free(part);
    free(rows[1]);
    free(rows[0]);
    free(e);
    return rc;
}

uint64_t pb_png_bytes(uint32_t width, int channels)
{
    return sizeof(struct encode) + 2 * row_room(width, channels) + part_room(width, channels) +
           packed_room();
}
