/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEFLATE_FORMAT_H
#define PB_DEFLATE_FORMAT_H
/* Deflate (RFC 1951) as the encoders of runs and pairs write it, on the CPU
 * (pipeline/codec/deflate_runs.c, deflate_pairs.c) and on devices (deflate_pack.cuh,
 * deflate_pairs.cuh): numbers and rules that decide about the bytes. */
#include "kernels/pixel.h"

#define PB_DEFLATE_RUNS_CHUNK 65528 /* bytes that share one code; one stored block holds them */

enum {
    PB_DEFLATE_END = 256,
    PB_DEFLATE_LITLEN = 286,   /* symbols of literals and lengths */
    PB_DEFLATE_CODE_BITS = 14, /* at most, of one of them */
    PB_DEFLATE_LENGTHS = 19,   /* symbols of the table of code lengths */
    PB_DEFLATE_LENGTHS_BITS = 7,
    PB_DEFLATE_DISTANCES = 30, /* symbols of distances */
    PB_DEFLATE_RUN_MAX = 258
};

/* Numbers of the encoder of pairs of bytes (pipeline/codec/deflate_pairs.c, deflate_pairs.cuh),
 * counted in pairs. */
enum {
    PB_DEFLATE_PAIRS = PB_DEFLATE_RUNS_CHUNK / 2, /* of a chunk, whose bytes share a code */
    PB_DEFLATE_PAIRS_HASH_BITS = 13,
    PB_DEFLATE_PAIRS_WINDOW = 32768 / 2, /* that a distance reaches back */
    PB_DEFLATE_PAIRS_WORD = 2,
    PB_DEFLATE_PAIRS_LEFT = 4, /* a word begins where so many are left in the chunk */
    PB_DEFLATE_PAIRS_LENGTH_MAX = PB_DEFLATE_RUN_MAX / 2
};

/* Hash of a word of two pairs. */
PB_PIXEL uint32_t pb_deflate_pairs_hash(uint32_t word)
{
    return (word * UINT32_C(2654435761)) >> (32 - PB_DEFLATE_PAIRS_HASH_BITS);
}

/* The order in which the bits of the table's own code are sent (RFC 1951, 3.2.7). */
#define PB_DEFLATE_LENGTHS_ORDER                                                                   \
    {                                                                                              \
        16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15                           \
    }

/* The logarithm to base 2 of v > 0, rounded down. */
PB_PIXEL uint32_t pb_log2_floor(uint32_t v)
{
#ifdef __CUDA_ARCH__
    return 31 - (uint32_t)__clz((int)v);
#else
    return 31 - (uint32_t)__builtin_clz(v);
#endif
}

/* Symbol, number and value of the extra bits of a match of 3 .. 258 bytes. */
PB_PIXEL uint32_t pb_deflate_length_symbol(uint32_t length, uint32_t *out_extra_bits,
                                           uint32_t *out_extra)
{
    const uint32_t l = length - 3;
    *out_extra_bits = 0;
    *out_extra = 0;
    if (length == PB_DEFLATE_RUN_MAX)
        return 285;
    if (l < 8)
        return 257 + l;
    /* l has extra + 3 bits: the upper three choose the symbol. */
    const uint32_t extra = pb_log2_floor(l) - 2;
    *out_extra_bits = extra;
    *out_extra = l & ((1u << extra) - 1);
    return 257 + 4 * extra + (l >> extra);
}

/* Count of the extra bits of a symbol of literals and lengths. */
PB_PIXEL uint32_t pb_deflate_length_bits(uint32_t symbol)
{
    return symbol < 261 || symbol == 285 ? 0 : (symbol - 261) / 4;
}

/* Symbol, number and value of the extra bits of a distance of 1 .. 32768 bytes. */
PB_PIXEL uint32_t pb_deflate_distance_symbol(uint32_t distance, uint32_t *out_extra_bits,
                                             uint32_t *out_extra)
{
    const uint32_t d = distance - 1;
    *out_extra_bits = 0;
    *out_extra = 0;
    if (d < 4)
        return d;
    /* d has extra + 2 bits: the upper two choose the symbol. */
    const uint32_t extra = pb_log2_floor(d) - 1;
    *out_extra_bits = extra;
    *out_extra = d & ((1u << extra) - 1);
    return 2 * extra + (d >> extra);
}

/* Count of the extra bits of a symbol of distances. */
PB_PIXEL uint32_t pb_deflate_distance_bits(uint32_t symbol)
{
    return symbol < 4 ? 0 : symbol / 2 - 1;
}

/* The next match of a run: at most 258, and never leaving 1 or 2. */
PB_PIXEL uint32_t pb_deflate_part_of(uint32_t left)
{
    if (left <= PB_DEFLATE_RUN_MAX)
        return left;
    return left - PB_DEFLATE_RUN_MAX < 3 ? PB_DEFLATE_RUN_MAX - 3 : PB_DEFLATE_RUN_MAX;
}

/* The symbol that says how often the length before, or 0, comes again, n times are left, n > 0. */
PB_PIXEL uint32_t pb_deflate_repeat(uint32_t length, uint32_t n, uint32_t *out_symbol,
                                    uint32_t *out_extra)
{
    *out_symbol = length;
    *out_extra = 0;
    if (n < 3)
        return 1;
    if (length != 0) {
        const uint32_t take = n < 6 ? n : 6;
        *out_symbol = 16;
        *out_extra = take - 3;
        return take;
    }
    const uint32_t take = n < 138 ? n : 138;
    *out_symbol = take < 11 ? 17 : 18;
    *out_extra = take - (take < 11 ? 3 : 11);
    return take;
}

/* Extra bits of a symbol of the table. */
PB_PIXEL uint32_t pb_deflate_repeat_bits(uint32_t symbol)
{
    return symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
}
#endif
