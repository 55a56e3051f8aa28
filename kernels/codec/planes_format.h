/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLANES_FORMAT_H
#define PB_PLANES_FORMAT_H
/* Rules of the encoder of planes (pipeline/codec/deflate_planes.h) that determine its output, for
 * the CPU and for devices (deflate_planes.cuh). Integers and sums of them, which do not depend on
 * the order of rows.
 *
 * A row of float32 samples after predictor 3 has four planes of bytes. The two upper planes are
 * coded, with one code for the whole block. The two lower planes are noise in most rows and are
 * stored; in a flat row they are coded with the same code. */
#include "kernels/codec/deflate_format.h"

enum {
    PB_PLANES_COUNT = 4,         /* planes of a row */
    PB_PLANES_EVERY = 8,         /* one of this many rows is counted, fewer in large blocks */
    PB_PLANES_COUNTED = 1 << 22, /* most bytes of counted rows: devices sort counts of 23 bits */
    PB_PLANES_NEAR = 8,          /* literals with a smaller distance have their own counts */
    PB_PLANES_FAR = 96,          /* literals with this distance or more have one count */
    PB_PLANES_ROW_MIN = 512,     /* bytes; shorter rows are too small for a table */
    /* Bits of a row in addition to its codes, its table and its lower planes: the head of the
     * stored block, and the bits up to a whole byte. */
    PB_PLANES_STORED_BITS = 3 + 4 + 32,
    PB_PLANES_FLAT_BITS = 48,    /* additional bits of a flat row, whose runs end at its middle */
    PB_PLANES_TABLE_EVERY = 128, /* estimate of runs: tables take a bit for this many bytes */
    PB_PLANES_GAIN = 256         /* least gain over runs: a 256th */
};

/* True if blocks of such rows can be encoded: a stored block has room for half a row. Pure. */
PB_PIXEL bool pb_planes_fit(uint32_t planes, uint64_t row_bytes)
{
    return planes == PB_PLANES_COUNT && row_bytes >= PB_PLANES_ROW_MIN && row_bytes % 16 == 0 &&
           row_bytes / 2 <= PB_DEFLATE_RUNS_CHUNK;
}

/* One of this many rows is counted, beginning with the first. */
PB_PIXEL uint32_t pb_planes_every(uint64_t row_bytes, uint32_t rows)
{
    uint32_t every = PB_PLANES_EVERY;
    while ((rows + every - 1) / every * row_bytes > PB_PLANES_COUNTED)
        every *= 2;
    return every;
}

/* Largest encoded size in bytes; the block is encoded by runs if planes take more. A block has room
 * for one more row: a row takes at most 7/8 of its bytes for codes, 1/2 for lower planes, and a
 * table. */
PB_PIXEL uint64_t pb_planes_limit(uint64_t row_bytes, uint64_t rows)
{
    return rows > 3 ? row_bytes * (rows - 3) : 0;
}

/* True if a word of eight bytes, the first one lowest, repeats the byte before it. */
PB_PIXEL bool pb_planes_repeats(uint64_t word, uint64_t before)
{
    return word == (word << 8 | before >> 56);
}

/* True if the lower planes of a row, of `bytes` bytes, are flat: at most an eighth of their words,
 * without the first, does not repeat the byte before it. others: count of these words. */
PB_PIXEL bool pb_planes_is_flat(uint32_t others, uint32_t bytes)
{
    return 8 * others <= bytes / 8 - 1;
}

/* Sum of the counts of literals whose distance from 0, modulo 256, is from .. to. */
PB_PIXEL uint64_t pb_planes_sum(const uint32_t *count, uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    for (uint32_t d = from; d <= to; d++)
        sum += (uint64_t)count[d] + count[(256 - d) & 255];
    return sum;
}

/* Count of symbol s for the code. Differences are symmetric about 0 and their histogram is smooth.
 * Therefore symbols share the mean of a range of distances, two ranges an octave, and all lengths
 * share one mean: this makes the table of the code short. Each symbol gets a code, because most
 * rows are not counted. */
PB_PIXEL uint32_t pb_planes_smooth(const uint32_t *count, uint32_t s)
{
    const uint32_t distance = s < 128 ? s : 256 - s;
    uint32_t from = distance, to = distance;
    if (s == PB_DEFLATE_END)
        return count[s] + 1;
    if (s > PB_DEFLATE_END) {
        uint64_t lengths = 0;
        for (uint32_t k = PB_DEFLATE_END + 1; k < PB_DEFLATE_LITLEN; k++)
            lengths += count[k];
        return (uint32_t)(lengths / (PB_DEFLATE_LITLEN - PB_DEFLATE_END - 1)) + 1;
    }
    if (distance >= PB_PLANES_FAR) {
        from = PB_PLANES_FAR;
        to = 128;
    } else if (distance >= PB_PLANES_NEAR) {
        const uint32_t width = 1u << (pb_log2_floor(distance) - 1);
        from = distance / width * width;
        to = from + width - 1;
    }
    return (uint32_t)(pb_planes_sum(count, from, to) / (2 * (to - from + 1))) + 1;
}

/* Sizes of the counted rows. */
struct pb_planes_sizes {
    uint64_t coded_bits;      /* planes: bits of all codes */
    uint64_t stored;          /* count of rows whose lower planes are stored */
    uint64_t head_bits;       /* bits of the table */
    uint64_t runs_bits;       /* the same rows with one code for all planes */
    uint64_t rows, row_bytes; /* count and size of counted rows */
};

/* True if planes are smaller than runs. */
PB_PIXEL bool pb_planes_pay(const struct pb_planes_sizes *sizes)
{
    const uint64_t bytes = sizes->rows * sizes->row_bytes;
    const uint64_t planes =
        sizes->coded_bits + sizes->head_bits + (sizes->rows - sizes->stored) * PB_PLANES_FLAT_BITS +
        sizes->stored * (sizes->head_bits + PB_PLANES_STORED_BITS + 4 * sizes->row_bytes);
    uint64_t runs = sizes->runs_bits + bytes / PB_PLANES_TABLE_EVERY;
    runs = runs < 8 * bytes ? runs : 8 * bytes;
    return planes + planes / PB_PLANES_GAIN < runs;
}
#endif
