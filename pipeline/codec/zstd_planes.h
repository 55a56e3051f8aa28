/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ZSTD_PLANES_H
#define PB_ZSTD_PLANES_H
/* Zstandard frames (RFC 8878) for rows of byte planes, as TIFF predictor 3 makes them from floats.
 * The planes of the high bytes have few values, those of the low bytes are noise: the former get
 * one Huffman code for all rows, the latter are stored. Runs of one byte are matches at distance 1;
 * there is no search for strings. Any zstd decoder reads the frames. Allocates nothing. Thread:
 * any, one workspace each. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PB_ZSTD_BLOCK = 1 << 17, /* bytes that a block of a frame decodes to, at most */
    PB_ZSTD_RUN = 6,         /* bytes of the shortest run that is a match */
    PB_ZSTD_PLANE_MIN = 128, /* bytes of a plane of a row; smaller ones cost more than they save */
    PB_ZSTD_PLANES = 8,
    PB_ZSTD_LENGTHS = 53 /* codes of lengths of matches; literals have fewer */
};

/* Encoder's tables of a finite-state code (RFC 8878, 4.1). */
struct pb_zstd_states {
    unsigned log; /* there are 1 << log states */
    uint16_t next[1 << 9];
    struct {
        uint32_t bits; /* (state + bits) >> 16 is the number of bits that leave the state */
        int32_t
            from; /* index of its states in `next`, less the smallest state without these bits */
        uint16_t first; /* state of the last symbol, with which encoding begins */
    } symbol[PB_ZSTD_LENGTHS];
    uint8_t head[96]; /* description in the frame */
    unsigned head_bytes;
};

struct pb_zstd_planes {
    size_t row_bytes;
    uint32_t n_planes;
    uint32_t coded;     /* a bit for each plane: it gets codes */
    uint64_t code[256]; /* the code in the highest bits, its number of bits in the lowest byte */
    uint8_t head[128];  /* description of the Huffman code in the frame */
    unsigned head_bytes;
    bool repeats; /* true: rows that equal the row before are matches */
    struct pb_zstd_states literal_states, match_states, offset_states, weight_states;
    /* State of a decoder after the blocks that were written. */
    struct pb_zstd_sent {
        bool codes, states; /* true: a block has described them */
        bool repeat;        /* true: the last match was a row */
    } sent;
    /* The block that is being collected: consecutive bytes of the input. */
    const uint8_t *block;
    size_t block_bytes;
    uint32_t n_literals, n_sequences;
    uint32_t n_after; /* count of literals after the last sequence */
    struct pb_zstd_sequence {
        uint32_t literals, match; /* bytes; the literals precede the match */
        bool is_repeat;           /* true: the match is at the distance of a row; false: of 1 */
    } sequence[PB_ZSTD_BLOCK / (PB_ZSTD_RUN + 1) + 1];
    uint8_t literal[PB_ZSTD_BLOCK];
    size_t lost_bytes;   /* loss of blocks that descriptions of codes made too large */
    uint8_t *last_block; /* head of the last block that was written */
    uint32_t count[PB_ZSTD_PLANES][2][256]; /* histograms, by parity of the position */
};

/* True if blocks of up to `bytes` bytes with such rows can be encoded. Pure. */
bool pb_zstd_planes_fit(size_t bytes, size_t row_bytes, uint32_t n_planes);
/* Bound of the size of a frame for `bytes` bytes. */
size_t pb_zstd_planes_bound(size_t bytes);
/* Makes the codes for a block of n_rows > 0 rows, which fit. */
void pb_zstd_planes_prepare(struct pb_zstd_planes *work, const uint8_t *in, size_t n_rows,
                            size_t row_bytes, uint32_t n_planes);
/* Size of the rows with these codes, without the description of the codes; `out` is overwritten,
 * and as large as in the next function. */
size_t pb_zstd_planes_try(struct pb_zstd_planes *work, const uint8_t *in, size_t n_rows,
                          uint8_t *out);
/* Writes the frame of rows, with the codes of prepare. Returns the size; out holds
 * bound(n_rows * row_bytes). 0: the rows are so short that the codes are described late or never,
 * which makes the frame over a 256th larger. */
size_t pb_zstd_planes_frame(struct pb_zstd_planes *work, const uint8_t *in, size_t n_rows,
                            uint8_t *out);
#endif
