/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ENCODE_BATCH_H
#define PB_ENCODE_BATCH_H
/* A batch as kernels see it: the format, the blocks, and where the stages of the encoder leave what
 * the next one needs. Plain data, passed to kernels by value. A raw block is cut into chunks of
 * PB_DEFLATE_RUNS_CHUNK bytes, numbered through all blocks. C11 and C++17. */
#include "kernels/codec/deflate_format.h"
#include "kernels/codec/encode_device.h"
#include "kernels/codec/planes_format.h"
#include "kernels/codec/strings_pixel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_DEFLATE_SYMBOLS     288 /* with room */
#define PB_DEFLATE_ALL_SYMBOLS 320 /* and those of distances, from PB_DEFLATE_SYMBOLS on */
#define PB_DEFLATE_HEAD_WORDS  136 /* a chunk's table: at most 17 + 57 + 316 * 7 bits, with room */
#define PB_PAIRS_GROUP         32  /* pairs of bytes in an element of pb_pairs_group */
#define PB_PAIRS_CHUNK_GROUPS  ((PB_DEFLATE_PAIRS + PB_PAIRS_GROUP - 1) / PB_PAIRS_GROUP)

struct pb_deflate_sums { /* of a chunk, made by count */
    uint32_t count[PB_DEFLATE_SYMBOLS];
    uint32_t more;   /* extra bits; and distances, unless they are counted */
    uint32_t s1, s2; /* Adler sums of the chunk alone, modulo 65521 */
};

struct pb_deflate_code {               /* of a chunk, made by codes */
    uint32_t code[PB_DEFLATE_SYMBOLS]; /* bits << 16 | code, first bit lowest */
    uint32_t head[PB_DEFLATE_HEAD_WORDS];
    uint32_t head_bits, stored;
    uint64_t bits; /* of the chunk, unless it is stored */
    uint64_t at;   /* the bit of the output where it begins, made by place */
};

/* Symbols of the counted rows of a block whose planes may be encoded separately: the coded ones,
 * and the rest (deflate_planes.cuh). */
struct pb_planes_sums {
    uint32_t coded[PB_DEFLATE_SYMBOLS], rest[PB_DEFLATE_SYMBOLS];
    uint32_t coded_more, rest_more; /* extra bits and distances */
    uint32_t stored;                /* count of rows that are stored in part */
};

struct pb_planes_block {
    struct pb_deflate_code code; /* its codes and its table */
    uint32_t on;                 /* 0: the block is encoded by runs */
    uint32_t bytes, adler;       /* as in pb_encoded */
};

struct pb_planes_row {
    uint64_t at;    /* bit of the encoded block */
    uint32_t bits;  /* bits of its symbols */
    uint32_t flat;  /* nonzero: its lower planes are coded */
    uint32_t opens; /* nonzero: a table precedes them */
    uint32_t s1, s2;
};

/* Bits of PB_PAIRS_GROUP pairs of bytes, the first pair lowest. find sets those that can begin a
 * match, parse leaves those that begin one. */
struct pb_pairs_group {
    uint32_t match;
    uint32_t longer;  /* of `match`: more than a word, or a run */
    uint32_t literal; /* made by parse */
};

/* Distances of a chunk: how often each occurs, and its code. */
struct pb_pairs_distances {
    uint32_t count[PB_DEFLATE_DISTANCES], code[PB_DEFLATE_DISTANCES];
};

struct pb_encode_view {
    struct pb_encode_batch batch;
    uint8_t *raw; /* raw block i at raw + i * raw_stride */
    uint64_t raw_stride;
    uint32_t raw_bytes;
    uint32_t chunks;  /* of a block */
    uint32_t windows; /* of a block, for the estimate; 0: none is made */
    uint32_t window_bytes;
    struct pb_strings_sizes *strings; /* of each block */
    struct pb_deflate_sums *sums;     /* of each chunk */
    struct pb_deflate_code *code;     /* of each chunk */
    /* Size of a row whose planes may be encoded separately; 0: the others have no elements. */
    uint32_t row_bytes;
    uint32_t every;                     /* one of this many rows is counted */
    struct pb_planes_sums *planes_sums; /* an element for each block */
    struct pb_planes_block *planes;     /* an element for each block */
    struct pb_planes_row *planes_rows;  /* an element for each row of all blocks */
    /* Of blocks that are searched by pairs; 0: no block is, the others have no elements. */
    uint32_t groups; /* of a block */
    struct pb_pairs_group *pairs_groups;
    struct pb_pairs_distances *distances; /* of each chunk */
    /* An element for each pair of bytes, raw_stride / 2 of a block: pairs from the start of a match
     * back to its string, 0 = a run, whose distance is a byte. The element after it has the pairs
     * of a match that is longer than a word. */
    uint16_t *pairs_back;
};

/* Lays out batch.workspace. -EINVAL as pb_encode_measure, and for an output or a workspace that is
 * not aligned. */
int pb_encode_view_of(const struct pb_encode_batch *batch, struct pb_encode_view *out_view);

#ifdef __cplusplus
}
#endif
#endif
