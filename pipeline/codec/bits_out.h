/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BITS_OUT_H
#define PB_BITS_OUT_H
/* Writer of bits, the lowest of each byte first, as deflate and zstd have them. Thread: any, one
 * writer each. */
#include <stdint.h>
#include <string.h>

struct pb_bits_out {
    uint8_t *at;
    uint64_t held;
    unsigned n; /* count of held bits; < 8 after pb_bits_empty() */
};

/* The n bits of `value`; at most 64 bits are held. */
static inline void pb_bits_push(struct pb_bits_out *bits, uint64_t value, unsigned n)
{
    bits->held |= value << bits->n;
    bits->n += n;
}

/* Writes eight bytes, of which only the complete ones count: the bound includes the others. */
static inline void pb_bits_empty(struct pb_bits_out *bits)
{
    memcpy(bits->at, &bits->held, 8);
    bits->at += bits->n / 8;
    bits->held >>= bits->n & ~7u;
    bits->n &= 7;
}

static inline void pb_bits_put(struct pb_bits_out *bits, uint64_t value, unsigned n)
{
    pb_bits_push(bits, value, n);
    pb_bits_empty(bits);
}

/* Fills the last byte with zeros. */
static inline void pb_bits_align(struct pb_bits_out *bits)
{
    if (bits->n > 0)
        pb_bits_put(bits, 0, 8 - bits->n);
}

/* A code word has the code in its highest bits, and the count of its bits in its lowest byte. */
static inline void pb_bits_push_code(struct pb_bits_out *bits, uint64_t code)
{
    const unsigned n = code & 63;
    pb_bits_push(bits, code >> (64 - n), n);
}

/* Four codes, a first. They are joined in pairs, which do not depend on each other: the earlier one
 * is shifted down by the bits of the later one, which is in the highest. They have at most 56 bits,
 * therefore the last shift removes the remains of the bit counts. */
static inline void pb_bits_push_codes(struct pb_bits_out *bits, uint64_t a, uint64_t b, uint64_t c,
                                      uint64_t d)
{
    const uint64_t later = c + d, n = (a + b + later) & 63;
    const uint64_t four = ((a >> (b & 63) | b) >> (later & 63)) | (c >> (d & 63) | d);
    pb_bits_push(bits, four >> (-n & 63), (unsigned)n);
}
#endif
