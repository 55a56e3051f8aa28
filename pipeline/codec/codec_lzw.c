/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* LZW of TIFF 6.0: codes of 9 to 12 bits, most significant bit first, "early change" (the
 * width grows one code before it must), Clear (256) at the start and whenever the table is full,
 * End (257) at the end. The table of strings is a small hash with linear probing: 3838 strings in
 * 8192 cells of 32 bits (20 bits of key, 12 bits of code), which stays in the first-level cache. */
#include "pipeline/codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LZW_CLEAR 256u
#define LZW_END   257u
#define LZW_FIRST 258u
#define LZW_FULL  4094u /* the code that is never used */
#define CELLS     8192u
#define EMPTY     UINT32_MAX /* no entry has this value: its code would be 4095 */

struct lzw {
    uint32_t cell[CELLS]; /* prefix code << 20 | byte << 12 | code */
};

struct bits {
    uint8_t *at;
    uint64_t held; /* the low `n` bits are not written yet, n < 8 between puts */
    unsigned n, width;
};

static size_t lzw_bound(size_t bytes)
{
    /* At most a 12-bit code a byte, a Clear every 3836 codes, and start, end and last bits. */
    return bytes + bytes / 2 + bytes / 2048 + 16;
}

static uint64_t lzw_context_bytes(int level, const struct pb_codec_blocks *blocks)
{
    (void)level;
    (void)blocks;
    return sizeof(struct lzw);
}

static int lzw_create(int level, const struct pb_codec_blocks *blocks, void **out_context)
{
    (void)level;
    (void)blocks;
    void *context = malloc(sizeof(struct lzw));
    if (context == NULL)
        return -ENOMEM;
    *out_context = context;
    return 0;
}

static inline void put(struct bits *bits, uint32_t code)
{
    bits->held = bits->held << bits->width | code;
    bits->n += bits->width;
    while (bits->n >= 8) {
        bits->n -= 8;
        *bits->at++ = (uint8_t)(bits->held >> bits->n);
    }
}

/* Call it after a code was put: the table has one more string. Returns the next free code. */
static inline uint32_t grow(struct lzw *lzw, struct bits *bits, uint32_t next)
{
    next++;
    if (next == LZW_FULL) {
        put(bits, LZW_CLEAR);
        bits->width = 9;
        memset(lzw->cell, 0xff, sizeof lzw->cell);
        return LZW_FIRST;
    }
    if (next >> bits->width)
        bits->width++;
    return next;
}

static int lzw_encode(void *context, const void *in, size_t bytes, void *out, size_t capacity,
                      size_t *out_bytes)
{
    struct lzw *lzw = context;
    const uint8_t *from = in;
    struct bits bits = {.at = out, .width = 9};
    uint32_t next = LZW_FIRST;
    if (bytes == 0 || capacity < lzw_bound(bytes))
        return -EIO;
    memset(lzw->cell, 0xff, sizeof lzw->cell);
    put(&bits, LZW_CLEAR);
    uint32_t prefix = from[0];
    for (size_t i = 1; i < bytes; i++) {
        uint32_t key = prefix << 8 | from[i];
        uint32_t at = (key * 2654435761u) >> 19;
        while (lzw->cell[at] != EMPTY && lzw->cell[at] >> 12 != key)
            at = (at + 1) % CELLS;
        if (lzw->cell[at] != EMPTY) {
            prefix = lzw->cell[at] & 0xfff;
            continue;
        }
        put(&bits, prefix);
        lzw->cell[at] = key << 12 | next;
        next = grow(lzw, &bits, next);
        prefix = from[i];
    }
    put(&bits, prefix);
    (void)grow(lzw, &bits, next); /* the reader counts this code too, and may widen */
    put(&bits, LZW_END);
    if (bits.n > 0)
        *bits.at++ = (uint8_t)(bits.held << (8 - bits.n));
    *out_bytes = (size_t)(bits.at - (uint8_t *)out);
    return 0;
}

static void lzw_destroy(void *context)
{
    free(context);
}

/* Files from before TIFF 5 have the bits of codes in reverse order (decode_lzw.c). */
static bool lzw_is_common(const void *block, size_t bytes)
{
    const uint8_t *first = block; /* the code that clears the table */
    return bytes > 1 && first[0] == 0x80 && first[1] < 0x80;
}

const struct pb_codec pb_codec_lzw = {
    .name = "lzw",
    .tiff_compression = 5,
    .bound = lzw_bound,
    .context_bytes = lzw_context_bytes,
    .create = lzw_create,
    .encode = lzw_encode,
    .destroy = lzw_destroy,
    .is_common = lzw_is_common,
};
