/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STRINGS_PIXEL_H
#define PB_STRINGS_PIXEL_H
/* Estimate of the bits that repeated strings save in a block: the parts that the CPU and devices
 * (deflate_strings.cuh) share. Rule and figures are in pipeline/codec/deflate_strings.c. Integers
 * and sums of them, which do not depend on the order of segments and windows. */
#include "kernels/codec/deflate_format.h"

#define PB_STRINGS_HASH_BITS 14

enum pb_strings {
    PB_STRINGS_NONE, /* no strings, few strings, or nearly only runs */
    PB_STRINGS_SOME, /* short strings */
    PB_STRINGS_MANY  /* probably long strings: a byte takes less than two bits, as in maps */
};

enum {
    PB_STRINGS_WINDOW = 32768,
    PB_STRINGS_WINDOW_EVERY = 1 << 20, /* bytes of a block for each window */
    PB_STRINGS_WINDOWS_MAX = 4,
    PB_STRINGS_SEGMENT = 64,
    PB_STRINGS_SEGMENT_EVERY = 1012, /* no divisor or multiple of the length of a line */
    PB_STRINGS_PAIR = 2,             /* words begin at multiples of this many bytes */
    PB_STRINGS_WORD = 4,
    PB_STRINGS_NOWHERE = 0xffff,
    PB_STRINGS_MIN_PERCENT = 3,
    PB_STRINGS_LOST_HALVES = 5, /* largest loss, in halves of the savings */
    /* The same for blocks with many short strings, such as shaded relief in bytes. */
    PB_STRINGS_MORE_PERCENT = 5,
    PB_STRINGS_MORE_LOST_HALVES = 12,
    PB_STRINGS_BIT = 16, /* unit of a cost: a 16th of a bit */
    /* Cost of a match at distance 1; the logarithm of the distance is added. */
    PB_STRINGS_MATCH = 4 * PB_STRINGS_BIT,
    PB_STRINGS_RUN_SHARE = 8, /* bytes of a run that cost a bit */
    PB_STRINGS_ALL_RUNS = 5,  /* bytes that cost a bit in a block of nearly only runs */
    PB_STRINGS_FEW_VALUES = 5 /* largest mean of the bits of a literal if values are few */
};

struct pb_strings_sizes {
    uint64_t all;   /* cost without strings, in sixteenths of a bit */
    uint64_t saved; /* sum over the strings that cost less than their literals */
    uint64_t lost;  /* sum over the strings that cost more */
    uint64_t bytes;
    uint64_t literals, literal_bytes; /* the shares of `all` and `bytes` outside of runs */
};

/* Count of the windows of a block, and the bytes of each. */
PB_PIXEL uint32_t pb_strings_windows(size_t bytes, uint32_t *out_window_bytes)
{
    const size_t windows = bytes / PB_STRINGS_WINDOW_EVERY;
    *out_window_bytes = bytes < PB_STRINGS_WINDOW ? (uint32_t)bytes : (uint32_t)PB_STRINGS_WINDOW;
    if (windows < 1)
        return 1;
    return windows < PB_STRINGS_WINDOWS_MAX ? (uint32_t)windows : (uint32_t)PB_STRINGS_WINDOWS_MAX;
}

/* First byte of window i of n. */
PB_PIXEL size_t pb_strings_window_at(size_t bytes, uint32_t window_bytes, uint32_t i, uint32_t n)
{
    const size_t at = (bytes - window_bytes) / ((size_t)2 * n) * ((size_t)2 * i + 1);
    return at - at % PB_STRINGS_PAIR;
}

/* Count of the words in a window of n bytes. */
PB_PIXEL uint32_t pb_strings_words(uint32_t n)
{
    return n < PB_STRINGS_WORD ? 0 : (n - PB_STRINGS_WORD) / PB_STRINGS_PAIR + 1;
}

/* True if the segment from `at` on, and a word after it, are in a window of n bytes. */
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

/* Cost of a byte whose value `count` of `total` bytes have. */
PB_PIXEL uint16_t pb_strings_literal_cost(uint32_t count, uint32_t total)
{
    const uint32_t cost = pb_strings_log2(total) - (count > 0 ? pb_strings_log2(count) : 0);
    const uint32_t least = PB_STRINGS_BIT;
    return (uint16_t)(cost > least ? cost : least);
}

/* Tables for the segments of a window. */
struct pb_strings_coder {
    const uint8_t *in;     /* the window */
    const uint16_t *first; /* first pair of the first word with each hash, or NOWHERE */
    const uint16_t *cost;  /* cost of each literal */
};

/* Count of the bytes, in whole pairs, from `at` on that repeat the byte before it; 0 if they are
 * fewer than a word. */
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

/* Length in bytes of the string of whole pairs from `at` on that occurs earlier in the window, at
 * *out_from; 0 if the table has no such string. */
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

/* True if strings save a share of the block and lose little in comparison. */
PB_PIXEL bool pb_strings_save(const struct pb_strings_sizes *sizes, uint32_t percent,
                              uint32_t lost_halves)
{
    return sizes->saved * 100 >= sizes->all * percent &&
           sizes->lost * 2 <= sizes->saved * lost_halves;
}

/* Verdict from the sizes of all windows. */
PB_PIXEL enum pb_strings pb_strings_verdict(const struct pb_strings_sizes *sizes)
{
    if (sizes->bytes == 0) /* a search in such a small block takes no time */
        return PB_STRINGS_MANY;
    if (sizes->all * PB_STRINGS_ALL_RUNS < PB_STRINGS_BIT * sizes->bytes)
        return PB_STRINGS_NONE;
    const bool saves = pb_strings_save(sizes, PB_STRINGS_MIN_PERCENT, PB_STRINGS_LOST_HALVES);
    const bool few =
        sizes->literals < (uint64_t)PB_STRINGS_FEW_VALUES * PB_STRINGS_BIT * sizes->literal_bytes;
    /* Runs next to noise take less than two bits a byte as well, but have no strings. */
    if (sizes->all < 2 * PB_STRINGS_BIT * sizes->bytes)
        return saves || few ? PB_STRINGS_MANY : PB_STRINGS_NONE;
    return saves || pb_strings_save(sizes, PB_STRINGS_MORE_PERCENT, PB_STRINGS_MORE_LOST_HALVES)
               ? PB_STRINGS_SOME
               : PB_STRINGS_NONE;
}
#endif
