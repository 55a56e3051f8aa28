/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RAW_BLOCKS_H
#define PB_RAW_BLOCKS_H
/* The blocks of a raster as its file stores them, for who decodes them elsewhere. Of rasters that
 * the host has to decode, and of masks, planes of pixels as pb_raster_read makes them come instead,
 * in blocks of a layout that stands in for the file's: a plane a band, not compressed. */
#include "pipeline/raster/block_copy.h"

/* What becomes of a raster elsewhere. */
struct pb_raw_how {
    bool by_host; /* pb_raster_read makes its pixels; else info->own_blocks */
    enum pb_raw_mask {
        PB_RAW_MASK_NONE,
        PB_RAW_MASK_ALPHA, /* one byte of each decoded pixel: band info->alpha_band */
        PB_RAW_MASK_HOST   /* pb_raster_read makes it */
    } mask;
};

struct pb_raw_blocks {
    const struct pb_raster *raster; /* borrowed */
    const struct pb_block_layout *layout;
    const struct pb_block_fill *fill; /* of blocks that are not stored; the raster's */
    struct pb_block_place *place;     /* n, as pb_block_reader_places has them; owned. NULL by_host:
                                         all are there */
    uint64_t n;
    struct pb_raw_how how;
    int32_t alpha_band;               /* 1-based; of PB_RAW_MASK_ALPHA */
    struct pb_block_layout *stand_in; /* the layout, by_host; owned */
};

/* Reads the places. Zero *blocks before; it needs free in any case. Thread: one. */
int pb_raw_blocks_open(struct pb_raw_blocks *blocks, const struct pb_raster *raster,
                       const struct pb_raw_how *how, struct pb_err *err);
void pb_raw_blocks_free(struct pb_raw_blocks *blocks);
/* Pixels of the blocks that stand in for those of a raster: whole blocks of the file, at least
 * 256 x 128 px where the image has them. Of a raster with blocks of this size it is the same. */
void pb_raw_blocks_stand_in(const struct pb_raster_info *info, uint32_t *out_w, uint32_t *out_h);

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
