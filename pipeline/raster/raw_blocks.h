/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RAW_BLOCKS_H
#define PB_RAW_BLOCKS_H
/* The blocks of a raster as its file stores them, for who decodes them elsewhere. Rasters whose
 * info has own_blocks only. */
#include "pipeline/raster/block_copy.h"

struct pb_raw_blocks {
    const struct pb_raster *raster; /* borrowed */
    const struct pb_block_layout *layout;
    const struct pb_block_fill *fill; /* of blocks that are not stored; both the raster's */
    struct pb_block_place *place;     /* n, as pb_block_reader_places has them; owned */
    uint64_t n;
};

/* Reads the places. Zero *blocks before; it needs free in any case. Thread: one. */
int pb_raw_blocks_open(struct pb_raw_blocks *blocks, const struct pb_raster *raster,
                       struct pb_err *err);
void pb_raw_blocks_free(struct pb_raw_blocks *blocks);

/* Bytes of block `index` of a raster as it is stored, at that place, from byte `from` of it. Errors
 * as pb_raster_read has them. Thread: any. */
int pb_raster_fetch_block(const struct pb_raster *raster, uint64_t index,
                          const struct pb_block_place *place, uint64_t from, void *out,
                          size_t bytes, struct pb_err *err);
/* A block, decoded on this host; *out_data: layout's block_bytes as the predictor has
 * left them, the raster's until its next call. What is wrong with a block is said as by
 * pb_raster_read. Thread: the raster's. */
int pb_raster_decode_block(struct pb_raster *raster, uint64_t index, struct pb_err *err,
                           const void **out_data);

/* What the raster decodes its blocks with. */
struct pb_block_reader;
const struct pb_block_reader *pb_raster_block_reader(const struct pb_raster *raster);
const struct pb_block_fill *pb_raster_block_fill(const struct pb_raster *raster);
#endif
