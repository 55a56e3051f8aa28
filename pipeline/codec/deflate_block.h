/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEFLATE_BLOCK_H
#define PB_DEFLATE_BLOCK_H
/* Parts of a block of deflate: runs, counts, a code and its table. Private to deflate_*.c;
 * functions are in deflate_runs.c. */
#include "pipeline/codec/bits_out.h"
#include "pipeline/codec/deflate_runs.h"

#include <string.h>

/* The code of a block. */
struct pb_deflate_table {
    uint8_t lengths[PB_DEFLATE_LITLEN]; /* bits of each symbol */
    uint8_t distances[PB_DEFLATE_DISTANCES];
    unsigned n_distances; /* at least 1 */
    /* The lengths of both, run-length coded (RFC 1951, 3.2.7). */
    uint8_t symbol[PB_DEFLATE_LITLEN + PB_DEFLATE_DISTANCES];
    uint8_t extra[PB_DEFLATE_LITLEN + PB_DEFLATE_DISTANCES];
    unsigned n, n_litlen, n_order;
    uint8_t bits[PB_DEFLATE_LENGTHS];
    uint16_t code[PB_DEFLATE_LENGTHS];
    uint64_t size; /* bits in the stream, including the block's head */
};

/* First position from `at` on whose byte differs from the one before `at`; n if all are equal.
 * at > 0. */
static inline uint32_t pb_deflate_run_end(const uint8_t *in, uint32_t at, uint32_t n)
{
    const uint64_t same = in[at - 1] * UINT64_C(0x0101010101010101);
    uint64_t word;
    for (; at + 8 <= n; at += 8) {
        memcpy(&word, in + at, 8);
        if (word != same)
            return at + (uint32_t)__builtin_ctzll(word ^ same) / 8;
    }
    while (at < n && in[at] == (uint8_t)same)
        at++;
    return at;
}

/* Finds the runs of n <= PB_DEFLATE_RUNS_CHUNK bytes, n > 0: work->run. */
void pb_deflate_find_runs(struct pb_deflate_runs *work, const uint8_t *in, uint32_t n);
/* work->count: cleared; the symbols of the same bytes are added; the sum of all tables is added up
 * in the first. pb_deflate_add_counts returns the extra bits and distance codes of all matches. */
void pb_deflate_clear_counts(struct pb_deflate_runs *work);
uint64_t pb_deflate_add_counts(struct pb_deflate_runs *work, const uint8_t *in, uint32_t n);
void pb_deflate_sum_counts(struct pb_deflate_runs *work);
/* Run-length codes the lengths of the table. */
void pb_deflate_list_lengths(struct pb_deflate_table *table);
/* Makes the code for the counts, of which the only distance is 1: the table, and work->code. */
void pb_deflate_make_code(struct pb_deflate_runs *work, const uint32_t *count,
                          struct pb_deflate_table *out_table);
void pb_deflate_put_table(struct pb_bits_out *bits, const struct pb_deflate_table *table,
                          bool last);
/* Writes the symbols of the bytes whose runs were found. */
void pb_deflate_put_symbols(struct pb_bits_out *bits, const struct pb_deflate_runs *work,
                            const uint8_t *in, uint32_t n);
/* Ends a block. */
void pb_deflate_put_end(struct pb_bits_out *bits, const struct pb_deflate_runs *work);
/* A stored block of n <= 65535 bytes. */
void pb_deflate_put_stored(struct pb_bits_out *bits, const uint8_t *in, uint32_t n, bool last);
#endif
