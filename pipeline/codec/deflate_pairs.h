/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEFLATE_PAIRS_H
#define PB_DEFLATE_PAIRS_H
/* Deflate for samples of 16 bits, whose strings are short: two or three samples that occur among
 * the last 32 KiB as well. The unit is a pair of bytes: strings begin at even positions and have
 * even lengths and distances. Makes raw deflate blocks (RFC 1951); any inflater reads them. The
 * result depends on the bytes alone. Allocates nothing. Thread: any, one workspace each. */
#include "kernels/codec/deflate_format.h"

#include <stddef.h>
#include <stdint.h>

#define PB_DEFLATE_PAIRS_TABLES 4

enum { PB_DEFLATE_PAIRS_SYMBOLS = 512 };

struct pb_deflate_pairs {
    /* Indexed by the hash of a word of two pairs: the last position where such a word began, and in
     * the upper half the last but one. A position is a count of pairs from the window's beginning.
     */
    uint32_t last[1 << PB_DEFLATE_PAIRS_HASH_BITS];
    uint32_t met[PB_DEFLATE_PAIRS];            /* the entry that each word of the chunk found */
    uint32_t found[PB_DEFLATE_PAIRS / 32 + 1]; /* bit set: the pair can begin a match */
    uint32_t near[PB_DEFLATE_PAIRS / 32 + 1];  /* bit set: the last of the two words is equal */
    uint32_t token[PB_DEFLATE_PAIRS];          /* the symbols of each pair, then without gaps */
    /* Histograms of the tokens' two symbols, by position: the counts of equal neighbours are
     * independent of each other. */
    uint32_t firsts[PB_DEFLATE_PAIRS_TABLES][PB_DEFLATE_PAIRS_SYMBOLS];
    uint32_t seconds[PB_DEFLATE_PAIRS_TABLES][PB_DEFLATE_PAIRS_SYMBOLS];
    /* Codes of a token's two symbols, with their number of bits. */
    uint32_t first[PB_DEFLATE_PAIRS_SYMBOLS], second[PB_DEFLATE_PAIRS_SYMBOLS];
    uint32_t end; /* code of the end of a chunk */
};

/* Returns the size; out holds pb_deflate_runs_bound(bytes). bytes > 0. */
size_t pb_deflate_pairs(struct pb_deflate_pairs *work, const uint8_t *in, size_t bytes,
                        uint8_t *out);
#endif
