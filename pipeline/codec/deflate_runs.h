/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEFLATE_RUNS_H
#define PB_DEFLATE_RUNS_H
/* Deflate for data without repeated strings: Huffman codes and matches at distance 1 (runs of one
 * byte), no search for strings. The noisy low bytes of measured floats have no repeated strings;
 * this takes a third of the time. Makes raw deflate blocks (RFC 1951); any inflater reads them.
 * Allocates nothing. Thread: any, one workspace each. */
#include "kernels/codec/deflate_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_DEFLATE_RUNS_TABLES 8

struct pb_deflate_runs {
    struct {
        uint32_t at, bytes;
    } run[PB_DEFLATE_RUNS_CHUNK / 4 + 1];
    uint32_t n_runs;
    /* Histograms, by position: the counts of equal neighbours are independent of each other. */
    uint32_t count[PB_DEFLATE_RUNS_TABLES][288];
    uint64_t code[288]; /* the code in the highest bits, its number of bits in the lowest byte */
    uint64_t held;      /* for a stream in parts: the last bits, which fill no byte */
    unsigned n_held;    /* < 8 */
};

/* Bound for a whole stream, and for each part of one. */
size_t pb_deflate_runs_bound(size_t bytes);
/* Returns the size; out holds bound(bytes). bytes > 0. */
size_t pb_deflate_runs(struct pb_deflate_runs *work, const uint8_t *in, size_t bytes, uint8_t *out);
/* A stream in parts: start, then part for each, bytes > 0; the last one ends it. A part of
 * PB_DEFLATE_RUNS_CHUNK bytes gives the same output as in a whole stream. */
void pb_deflate_runs_start(struct pb_deflate_runs *work);
size_t pb_deflate_runs_part(struct pb_deflate_runs *work, const uint8_t *in, size_t bytes,
                            bool last, uint8_t *out);
#endif
