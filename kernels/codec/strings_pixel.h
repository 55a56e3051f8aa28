/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STRINGS_PIXEL_H
#define PB_STRINGS_PIXEL_H
/* The estimate of what repeated strings are worth in a block, whose rule and figures are in
 * pipeline/codec/deflate_strings.c: the parts that the CPU and devices (deflate_strings.cuh) share.
 * Integers, and sums of them: the order of segments and windows changes nothing. */
#include "kernels/codec/deflate_format.h"

#define PB_STRINGS_HASH_BITS 14

enum pb_strings {
    PB_STRINGS_NONE, /* or not worth their time, or there is little but runs */
    PB_STRINGS_SOME, /* short ones */
    PB_STRINGS_MANY  /* likely: a byte takes less than two bits, as in maps of few values */
};

enum {
    PB_STRINGS_WINDOW = 32768,
    PB_STRINGS_WINDOW_EVERY = 1 << 20, /* a window for so many bytes of a block */
    PB_STRINGS_WINDOWS_MAX = 4,
    PB_STRINGS_SEGMENT = 64,
    PB_STRINGS_SEGMENT_EVERY = 1012, /* lines have other lengths */
    PB_STRINGS_PAIR = 2,             /* words begin and end at its multiples */
    PB_STRINGS_WORD = 4,
    PB_STRINGS_NOWHERE = 0xffff,
    PB_STRINGS_MIN_PERCENT = 3,
    PB_STRINGS_LOST_HALVES = 5, /* of what is saved, at most */
    PB_STRINGS_BIT = 16,
    PB_STRINGS_MATCH = 4 * PB_STRINGS_BIT, /* cost at distance 1; its logarithm is added */
    PB_STRINGS_RUN_SHARE = 8,              /* bytes of a run that cost a bit */
    PB_STRINGS_ALL_RUNS = 5,               /* so many bytes a bit: little but runs */
    PB_STRINGS_FEW_VALUES = 5 /* bits of a byte that is in no run, at most, where values are few */
};

struct pb_strings_sizes {
    uint64_t all;         /* cost without strings, in sixteenths of a bit */
    uint64_t saved, lost; /* by strings that cost less than their literals, or more */
    uint64_t bytes;
    uint64_t literals, literal_bytes; /* what is in no run, of all and of bytes */
};

/* Windows of a block, and the bytes of one. */
PB_PIXEL uint32_t pb_strings_windows(size_t bytes, uint32_t *out_window_bytes)
{
    const size_t windows = bytes / PB_STRINGS_WINDOW_EVERY;
    *out_window_bytes = bytes < PB_STRINGS_WINDOW ? (uint32_t)bytes : (uint32_t)PB_STRINGS_WINDOW;
    if (windows < 1)
        return 1;
    return windows < PB_STRINGS_WINDOWS_MAX ? (uint32_t)windows : (uint32_t)PB_STRINGS_WINDOWS_MAX;
}

/* Where window i of n begins. */
PB_PIXEL size_t pb_strings_window_at(size_t bytes, uint32_t window_bytes, uint32_t i, uint32_t n)
{
    const size_t at = (bytes - window_bytes) / ((size_t)2 * n) * ((size_t)2 * i + 1);
    return at - at % PB_STRINGS_PAIR;
}

/* Words that begin in a window of n bytes. */
PB_PIXEL uint32_t pb_strings_words(uint32_t n)
{
    return n < PB_STRINGS_WORD ? 0 : (n - PB_STRINGS_WORD) / PB_STRINGS_PAIR + 1;
}

/* Whether the segment from `at` on, and a word behind it, lies in a window of n bytes. */
PB_PIXEL bool pb_strings_has_segment(uint32_t at, uint32_t n)
{
    return at + PB_STRINGS_SEGMENT + PB_STRINGS_WORD <= n;
}

/* Sixteen times the logarithm to base 2; v > 0. */
PB_PIXEL uint32_t pb_strings_log2(uint32_t v)
{
    const uint64_t fraction = UINT64_C(0xffedcba987654310); /* of sixteenths, four bits each */
    const uint32_t e = pb_log2_floor(v);
    return PB_STRINGS_BIT * e +
           (uint32_t)(fraction >> 4 * ((e >= 4 ? v >> (e - 4) : v << (4 - e)) & 15) & 15);
}

PB_PIXEL uint32_t pb_strings_word(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, PB_STRINGS_WORD);
    return word;
}

PB_PIXEL uint32_t pb_strings_hash(uint32_t word)
{
    return (word * UINT32_C(2654435761)) >> (32 - PB_STRINGS_HASH_BITS);
}

/* Of a byte that `count` of `total` bytes are. */
PB_PIXEL uint16_t pb_strings_literal_cost(uint32_t count, uint32_t total)
{
    const uint32_t cost = pb_strings_log2(total) - (count > 0 ? pb_strings_log2(count) : 0);
    const uint32_t least = PB_STRINGS_BIT;
    return (uint16_t)(cost > least ? cost : least);
}

/* What a segment is coded with: a window, by hash the pair of it that began the first word, and
 * what literals cost, in sixteenths of a bit. */
struct pb_strings_coder {
    const uint8_t *in;
    const uint16_t *first, *cost;
};

/* Bytes of whole pairs from `at` on that repeat the byte before it; 0: less than a word. */
PB_PIXEL uint32_t pb_strings_run(const uint8_t *in, uint32_t at, uint32_t end)
{
    const uint8_t before = in[at - 1];
    uint32_t n = PB_STRINGS_PAIR;
    if (pb_strings_word(in + at) != before * UINT32_C(0x01010101))
        return 0;
    while (at + n < end && in[at + n] == before && in[at + n + 1] == before)
        n += PB_STRINGS_PAIR;
    return n;
}

/* Bytes of whole pairs from `at` on that are before in the window as well; 0: none, as far as the
 * table has them. */
PB_PIXEL uint32_t pb_strings_match(const struct pb_strings_coder *coder, uint32_t at, uint32_t end,
                                   uint32_t *out_from)
{
    const uint8_t *const in = coder->in;
    const uint32_t word = pb_strings_word(in + at);
    const uint32_t from = (uint32_t)PB_STRINGS_PAIR * coder->first[pb_strings_hash(word)];
    uint32_t n = PB_STRINGS_WORD;
    if (from >= at || pb_strings_word(in + from) != word)
        return 0;
    while (at + n < end && in[from + n] == in[at + n] && in[from + n + 1] == in[at + n + 1])
        n += PB_STRINGS_PAIR;
    *out_from = from;
    return n;
}

PB_PIXEL void pb_strings_code_segment(const struct pb_strings_coder *coder, uint32_t at,
                                      struct pb_strings_sizes *sizes)
{
    const uint32_t end = at + PB_STRINGS_SEGMENT;
    sizes->bytes += PB_STRINGS_SEGMENT;
    while (at < end) {
        const uint32_t run = pb_strings_run(coder->in, at, end);
        sizes->all += PB_STRINGS_BIT * run / PB_STRINGS_RUN_SHARE;
        at += run;
        if (run > 0)
            continue;
        uint32_t from = 0, cost = 0;
        const uint32_t together = pb_strings_match(coder, at, end, &from);
        const uint32_t n = together > 0 ? together : (uint32_t)PB_STRINGS_PAIR;
        for (uint32_t i = 0; i < n; i++)
            cost += coder->cost[coder->in[at + i]];
        const uint32_t match = together > 0 ? PB_STRINGS_MATCH + pb_strings_log2(at - from) : cost;
        sizes->all += cost;
        sizes->saved += cost > match ? cost - match : 0;
        sizes->lost += match > cost ? match - cost : 0;
        sizes->literals += cost;
        sizes->literal_bytes += n;
        at += n;
    }
}

/* Of the sizes of all windows. */
PB_PIXEL enum pb_strings pb_strings_verdict(const struct pb_strings_sizes *sizes)
{
    if (sizes->bytes == 0) /* a block so small costs no time */
        return PB_STRINGS_MANY;
    if (sizes->all * PB_STRINGS_ALL_RUNS < PB_STRINGS_BIT * sizes->bytes)
        return PB_STRINGS_NONE;
    const bool saves = sizes->saved * 100 >= sizes->all * PB_STRINGS_MIN_PERCENT &&
                       sizes->lost * 2 <= sizes->saved * PB_STRINGS_LOST_HALVES;
    const bool few =
        sizes->literals < (uint64_t)PB_STRINGS_FEW_VALUES * PB_STRINGS_BIT * sizes->literal_bytes;
    if (sizes->all < 2 * PB_STRINGS_BIT * sizes->bytes && /* not by runs beside noise alone */
        (saves || few))
        return PB_STRINGS_MANY;
    return saves ? PB_STRINGS_SOME : PB_STRINGS_NONE;
}
#endif
