/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RAW_BLOCKS_H
#define PB_RAW_BLOCKS_H
/* Stored blocks of a raster, for decoders elsewhere. For rasters and masks that the host has to
 * decode, the blocks are planes of pixels made by pb_raster_read, in a substitute layout: one
 * plane per band, uncompressed. */
#include "pipeline/raster/block_copy.h"

/* Split of the decoding of a raster between this host and the other decoder. */
struct pb_raw_how {
    bool by_host; /* pb_raster_read makes its pixels; false requires info->own_blocks */
    enum pb_raw_mask {
        PB_RAW_MASK_NONE,
        PB_RAW_MASK_ALPHA,  /* a sample of each decoded pixel: band info->alpha_band */
        PB_RAW_MASK_BLOCKS, /* blocks of its own: info->mask_blocks */
        PB_RAW_MASK_HOST    /* pb_raster_read makes it */
    } mask;
};

/* Largest size of a block that is sent at once, in bytes. */
#define PB_RAW_PIECE_MOST (UINT64_C(64) << 20)
#define PB_RAW_PART_BYTES (UINT64_C(1) << 20) /* size of parts of uncompressed blocks: one read */

struct pb_raw_blocks {
    const struct pb_raster *raster; /* borrowed */
    const struct pb_block_layout *layout;
    const struct pb_block_fill *fill;   /* value of blocks that are not stored; the raster's */
    const struct pb_block_layout *mask; /* layout of its mask; with PB_RAW_MASK_BLOCKS */
    /* n places from pb_block_reader_places: those of the image's blocks, then, from number n_image
     * on, those of its mask's; owned. NULL if by_host: all blocks exist */
    struct pb_block_place *place;
    uint64_t n, n_image;
    struct pb_raw_how how;
    int32_t alpha_band;               /* 1-based; for PB_RAW_MASK_ALPHA */
    struct pb_block_layout *stand_in; /* substitute layout if by_host; owned */
};

/* Reads the places. *blocks must be zero before; call free in any case. Thread: one. */
int pb_raw_blocks_open(struct pb_raw_blocks *blocks, const struct pb_raster *raster,
                       const struct pb_raw_how *how, struct pb_err *err);
/* The same for blocks that the host decodes or makes, of a raster that is not open here. */
int pb_raw_blocks_open_made(struct pb_raw_blocks *blocks, const struct pb_raster_info *info,
                            const struct pb_raw_how *how, struct pb_err *err);
void pb_raw_blocks_free(struct pb_raw_blocks *blocks);
/* Sizes in pixels of the substitute blocks of a raster: whole blocks of the file, at least 256 x
 * 128 px if the image is that large. The same for a raster with blocks of this size. */
void pb_raw_blocks_stand_in(const struct pb_raster_info *info, uint32_t *out_w, uint32_t *out_h);
/* Bytes of one plane of such a block. */
uint64_t pb_raw_blocks_stand_in_bytes(const struct pb_raster_info *info);

/* A block is numbered as in struct pb_raw_blocks: those of a mask of its own follow the image's.
 * Reads stored bytes of block `index` of a raster at that place, from byte `from` of the block.
 * Errors of pb_raster_read. Thread: any. */
int pb_raster_fetch_block(const struct pb_raster *raster, uint64_t index,
                          const struct pb_block_place *place, uint64_t from, void *out,
                          size_t bytes, struct pb_err *err);
/* Decodes a block on this host; *out_data: the layout's block_bytes with the predictor not yet
 * undone, valid until the raster's next call. Errors of pb_raster_read. Thread: the raster's. */
int pb_raster_decode_block(struct pb_raster *raster, uint64_t index, struct pb_err *err,
                           const void **out_data);

/* Block readers of the raster and of its mask, and value of its blocks that are not stored. */
struct pb_block_reader;
const struct pb_block_reader *pb_raster_block_reader(const struct pb_raster *raster);
const struct pb_block_reader *pb_raster_mask_reader(const struct pb_raster *raster);
const struct pb_block_fill *pb_raster_block_fill(const struct pb_raster *raster);
#endif
