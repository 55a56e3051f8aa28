/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A window is contiguous, as strings repeat up to 32 KiB back: in short samples pixels would be
 * seen without the lines above them. Its words of four bytes at multiples of four are entered into
 * a table by their hash, the first of equal ones stays. Then segments of it, of 64 bytes each, are
 * coded as an encoder would: literals at the entropy of all segments, runs at next to nothing,
 * matches with what the table has before them.
 *
 * Sizes are added up over the windows; strings must save MIN_PERCENT of them. Where a byte takes
 * less than two bits and there are few values the segments are too short to tell: there are long
 * strings in maps. The estimate is low, as matches of four to six bytes are mostly not found.
 *
 * Measured (512 px blocks behind predictor 2; what libdeflate saves, and this estimate). Level 1:
 * bands of Sentinel-2 1.7 % (0.0 to 0.1), two of them chunky 5 (0.1), twenty chunky indices of
 * int16 1.1 (0.2), RGB of bytes -3.5 (0.0); without a predictor: the indices 47 (22), heights 44
 * (21), RGB 25 (14). Level 6, few values: SAR amplitudes 19, heights of a plain 7; the edge of a
 * band, noise beside nodata, has many values: -2 to 0, at a fifth of the speed. Blocks of floats
 * are not asked: behind predictor 3 strings save 0 to 4 % of most, at a sixth of the speed. */
#include "pipeline/codec/deflate_strings.h"

#include <stdbool.h>
#include <string.h>

enum {
    WINDOW = 32768,
    WINDOW_EVERY = 1 << 20, /* a window for so many bytes of a block */
    WINDOWS_MAX = 4,
    SEGMENT = 64,
    SEGMENT_EVERY = 1012, /* lines have other lengths */
    WORD = 4,
    NOWHERE = 0xffff,
    MIN_PERCENT = 2,
    BIT = 16,
    MATCH_COST = 13 * BIT, /* of a match at distance 1; the distance's logarithm is added */
    RUN_SHARE = 8,         /* bytes of a run that cost a bit */
    ALL_RUNS = 5,          /* so many bytes a bit: little but runs */
    FEW_VALUES = 5 /* bits of a byte that is in no run, at most, where there are few values */
};

struct sizes {
    uint64_t all, saved; /* in sixteenths of a bit */
    uint64_t bytes;
    uint64_t literals, literal_bytes; /* what is in no run, of all and of bytes */
};

/* Sixteen times the logarithm to base 2; v > 0. */
static uint32_t log2_16(uint32_t v)
{
    static const uint8_t fraction[16] = {0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15};
    unsigned e = 31 - (unsigned)__builtin_clz(v);
    return BIT * e + fraction[(e >= 4 ? v >> (e - 4) : v << (4 - e)) & 15];
}

static uint32_t word_at(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, WORD);
    return word;
}

static uint32_t hash_of(uint32_t word)
{
    return (word * UINT32_C(2654435761)) >> (32 - PB_STRINGS_HASH_BITS);
}

static void enter_words(struct pb_deflate_strings *work, const uint8_t *in, uint32_t n)
{
    memset(work->first, 0xff, sizeof work->first);
    for (uint32_t i = n / WORD; i-- > 0;) /* the first of equal ones is entered last */
        work->first[hash_of(word_at(in + (size_t)WORD * i))] = (uint16_t)i;
}

/* Whether the segment from `at` on, and a word behind it, lies in the window. */
static bool has_segment(uint32_t at, uint32_t n)
{
    return at + SEGMENT + WORD <= n;
}

static void cost_literals(struct pb_deflate_strings *work, const uint8_t *in, uint32_t n)
{
    uint32_t total = 1;
    memset(work->count, 0, sizeof work->count);
    for (uint32_t at = SEGMENT_EVERY; has_segment(at, n); at += SEGMENT_EVERY, total += SEGMENT)
        for (uint32_t i = at; i < at + SEGMENT; i++)
            work->count[i % 4][in[i]]++;
    for (unsigned s = 0; s < 256; s++) {
        uint32_t count =
            work->count[0][s] + work->count[1][s] + work->count[2][s] + work->count[3][s];
        uint32_t cost = log2_16(total) - (count > 0 ? log2_16(count) : 0);
        work->cost[s] = (uint16_t)(cost > BIT ? cost : BIT);
    }
}

/* Bytes from `at` on that are equal to the one before. */
static uint32_t run_at(const uint8_t *in, uint32_t at, uint32_t end)
{
    uint32_t n = 0;
    while (at + n < end && in[at + n] == in[at - 1])
        n++;
    return n;
}

/* What the next bytes cost without strings; *out_n of them are taken: a run or a literal. */
static uint32_t plain_cost(const struct pb_deflate_strings *work, const uint8_t *in, uint32_t at,
                           uint32_t end, uint32_t *out_n, bool *out_is_run)
{
    uint32_t n = run_at(in, at, end);
    bool is_run = n >= WORD || (n > 0 && at + n == end);
    *out_is_run = is_run;
    *out_n = is_run ? n : 1;
    return is_run ? BIT * n / RUN_SHARE : work->cost[in[at]];
}

/* Bytes from `at` on that lie before in the window as well; 0: none, as far as the table knows. */
static uint32_t match_at(const struct pb_deflate_strings *work, const uint8_t *in, uint32_t at,
                         uint32_t end, uint32_t *out_from)
{
    uint32_t word = word_at(in + at), from = (uint32_t)WORD * work->first[hash_of(word)], n = WORD;
    if (from >= at || word_at(in + from) != word)
        return 0;
    while (at + n < end && in[from + n] == in[at + n])
        n++;
    *out_from = from;
    return n;
}

static void code_segment(const struct pb_deflate_strings *work, const uint8_t *in, uint32_t at,
                         struct sizes *sizes)
{
    uint32_t end = at + SEGMENT;
    sizes->bytes += SEGMENT;
    while (at < end) {
        bool is_run, more_is_run;
        uint32_t n, from = 0, cost = plain_cost(work, in, at, end, &n, &is_run);
        sizes->literals += is_run ? 0 : cost;
        sizes->literal_bytes += is_run ? 0 : n;
        uint32_t more, together = n == 1 ? match_at(work, in, at, end, &from) : 0;
        for (; n < together; n += more)
            cost += plain_cost(work, in, at + n, at + together, &more, &more_is_run);
        uint32_t match = together > 0 ? MATCH_COST + log2_16(at - from) : cost;
        sizes->all += cost;
        sizes->saved += cost > match ? cost - match : 0;
        at += n;
    }
}

static void look(struct pb_deflate_strings *work, const uint8_t *in, uint32_t n,
                 struct sizes *sizes)
{
    enter_words(work, in, n);
    cost_literals(work, in, n);
    for (uint32_t at = SEGMENT_EVERY; has_segment(at, n); at += SEGMENT_EVERY)
        code_segment(work, in, at, sizes);
}

enum pb_strings pb_deflate_strings(struct pb_deflate_strings *work, const uint8_t *in, size_t bytes)
{
    struct sizes sizes = {0};
    size_t windows = bytes / WINDOW_EVERY, n = bytes < WINDOW ? bytes : WINDOW;
    windows = windows < 1 ? 1 : windows > WINDOWS_MAX ? WINDOWS_MAX : windows;
    for (size_t i = 0; i < windows; i++)
        look(work, in + (bytes - n) / (2 * windows) * (2 * i + 1), (uint32_t)n, &sizes);
    if (sizes.bytes == 0) /* a block so small costs no time */
        return PB_STRINGS_MANY;
    if (sizes.all * ALL_RUNS < BIT * sizes.bytes)
        return PB_STRINGS_NONE;
    bool saves = sizes.saved * 100 >= sizes.all * MIN_PERCENT;
    if (sizes.all < 2 * BIT * sizes.bytes && /* not by runs beside noise alone, as at an edge */
        (saves || sizes.literals < FEW_VALUES * BIT * sizes.literal_bytes))
        return PB_STRINGS_MANY;
    return saves ? PB_STRINGS_SOME : PB_STRINGS_NONE;
}
