/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * TIFF's LZW: codes of 9 to 12 bits, most significant bit first, one wider a code early; 256 clears
 * the table, 257 ends. A string of the table is the one before it and the byte that follows it in
 * the output; therefore it is in the output already, contiguous: an entry is its offset and length.
 *
 * Files from before TIFF 5 have the codes least significant bit first, and widen them one code
 * later. They are recognised by their first code, a clear, which is in other bits.
 *
 * Streams without the end code, and zeros after the last pixel, occur in valid files. A table
 * that is full and not cleared gets no more strings, but decoding continues for as many codes as
 * in libtiff. */
#include "pipeline/codec/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CLEAR = 256, END = 257, FIRST = 258, BITS_MIN = 9, BITS_MAX = 12, TABLE = 1 << BITS_MAX };
enum { OVERRUN = 1023 }; /* codes after the table is full */

struct entry {
    uint32_t at, bytes; /* in the output, for a block of less than 4 GiB */
};

/* The unread bits are at the upper end of `bits`, for old files at the lower end. */
struct input {
    const uint8_t *next, *end;
    uint64_t bits;
    unsigned n_bits;
    bool low_first;
};

static int create(void **out_context)
{
    *out_context = calloc(TABLE, sizeof(struct entry));
    return *out_context != NULL ? 0 : -ENOMEM;
}

/* Reads eight bytes at a time if that many remain; bytes that do not fit are read again. */
static inline void refill(struct input *in)
{
    uint64_t word;
    if (in->end - in->next >= 8 && !in->low_first) {
        memcpy(&word, in->next, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        in->bits |= word >> in->n_bits;
        in->next += (63 - in->n_bits) / 8;
        in->n_bits += (63 - in->n_bits) / 8 * 8;
        return;
    }
    for (; in->n_bits <= 56 && in->next < in->end; in->n_bits += 8)
        in->bits |= (uint64_t)*in->next++ << (in->low_first ? in->n_bits : 56 - in->n_bits);
}

/* The next code, or -1 when fewer bits are left. */
static inline int next_code(struct input *in, unsigned width)
{
    if (in->n_bits < width) {
        refill(in);
        if (in->n_bits < width)
            return -1;
    }
    in->n_bits -= width;
    uint64_t code = in->low_first ? in->bits & ((1u << width) - 1) : in->bits >> (64 - width);
    in->bits = in->low_first ? in->bits >> width : in->bits << width;
    return (int)code;
}

/* True if the rest may be padding: less than two bytes, or zeros. */
static bool is_padding(struct input in)
{
    if ((in.end - in.next) * 8 + in.n_bits < 16)
        return true;
    uint64_t held = in.n_bits == 0 ? 0 : in.low_first ? in.bits : in.bits >> (64 - in.n_bits);
    for (; in.next < in.end; in.next++)
        held |= *in.next;
    return held == 0;
}

/* Copies a string from earlier output; the last one may overlap itself by a byte. Short strings
 * are copied as eight bytes if there is room: surplus bytes are overwritten later, or are after
 * the end of the output. */
static inline void repeat(uint8_t *out, size_t at, size_t from, size_t bytes, size_t room)
{
    if (bytes <= 8 && room >= 8 && from + bytes <= at) {
        uint64_t word;
        memcpy(&word, out + from, 8);
        memcpy(out + at, &word, 8);
    } else if (from + bytes <= at) {
        memcpy(out + at, out + from, bytes);
    } else {
        for (size_t i = 0; i < bytes; i++)
            out[at + i] = out[from + i];
    }
}

/* A stream in progress. */
struct lzw {
    struct entry *table;
    struct input in;
    unsigned early, width, free_code, overrun;
    struct entry last; /* the string before; 0 bytes: the table was just cleared */
    uint8_t *out;
    size_t made, most;
    const char *why;
};

static inline void clear(struct lzw *s)
{
    s->width = BITS_MIN;
    s->free_code = FIRST;
    s->overrun = 0;
    s->last.bytes = 0;
}

/* Writes the string of a code. */
static inline bool put(struct lzw *s, unsigned code, struct entry *out_now)
{
    struct entry from = {0, 1};
    if (code > CLEAR && code == s->free_code && s->last.bytes > 0)
        /* the string that it defines itself */
        from = (struct entry){s->last.at, s->last.bytes + 1};
    else if (code > CLEAR && code < s->free_code)
        from = s->table[code];
    else if (code > CLEAR)
        s->why = "a code stands for a string that is not there";
    if (s->why == NULL && from.bytes > s->most - s->made)
        s->why = pb_decode_long;
    if (s->why != NULL)
        return false;
    if (code < CLEAR)
        s->out[s->made] = (uint8_t)code;
    else
        repeat(s->out, s->made, from.at, from.bytes, s->most - s->made);
    *out_now = (struct entry){(uint32_t)s->made, from.bytes};
    s->made += from.bytes;
    return true;
}

/* Adds the string before, with the byte after it, to the table. */
static inline bool define(struct lzw *s)
{
    if (s->last.bytes == 0)
        return true;
    if (s->free_code == TABLE) {
        if (++s->overrun > OVERRUN)
            s->why = "its table was never cleared";
        return s->why == NULL;
    }
    s->table[s->free_code++] = (struct entry){s->last.at, s->last.bytes + 1};
    if (s->free_code + s->early >= 1u << s->width && s->width < BITS_MAX)
        s->width++;
    return true;
}

static int run(void *context, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t least,
               size_t most, const char **out_why)
{
    struct lzw s = {
        .table = context, .in = {.next = in, .end = in + in_bytes}, .out = out, .most = most};
    s.in.low_first = in_bytes >= 2 && in[0] == 0 && (in[1] & 1) != 0;
    s.early = s.in.low_first ? 0 : 1;
    clear(&s);
    while (s.why == NULL) {
        bool padding = s.made == most && is_padding(s.in);
        int code = padding ? -1 : next_code(&s.in, s.width);
        struct entry now;
        if (code < 0 || code == END) {
            *out_why = pb_decode_short;
            return s.made >= least ? 0 : -EBADMSG;
        }
        if (code == CLEAR)
            clear(&s);
        else if (put(&s, (unsigned)code, &now) && define(&s))
            s.last = now;
    }
    *out_why = s.why;
    return -EBADMSG;
}

const struct pb_decode pb_decode_lzw = {
    .name = "LZW",
    .context_bytes = TABLE * sizeof(struct entry),
    .create = create,
    .destroy = free,
    .run = run,
};
