/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_WRITER_H
#define PB_TIFF_WRITER_H
/* Assembles a cloud-optimised GeoTIFF out of blocks that lie in a spool; or, when all have the same
 * size, in the file itself: then every offset is known before the first block is. The order of
 * bytes does not depend on the order of the blocks: header, GDAL's structural metadata, all
 * directories from the full image down, their tables of blocks, then the blocks of the smallest
 * overview first and of the full image last, row by row. With masks, each directory of the image is
 * followed by one of its mask, one bit a pixel, 1 where it is valid. Little-endian; classic TIFF
 * when it fits 4 GiB, else BigTIFF. One thread. */
#include "config/base/err.h"
#include "pipeline/io/file_out.h"
#include "pipeline/raster/raster.h"
#include "pipeline/cog/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_tiff_level {
    int32_t width, height;
    uint64_t n_blocks;                    /* row-major */
    const struct pb_spool_extent *extent; /* borrowed; all there; not used with block_bytes */
};

enum pb_photometric {
    PB_PHOTOMETRIC_GRAY = 1,
    PB_PHOTOMETRIC_RGB = 2,
    PB_PHOTOMETRIC_PALETTE = 3,
    PB_PHOTOMETRIC_YCBCR = 6 /* of JPEG: chroma has half the rows and columns */
};

struct pb_tiff_image {
    const struct pb_tiff_level *level; /* [0] is the full image */
    uint32_t n_levels;
    bool masks;                      /* level[1], level[3], ... are the masks of those before */
    uint64_t block_bytes;            /* of every block; 0 = each extent has its own */
    uint64_t mask_block_bytes;       /* the same of masks' blocks */
    uint16_t mask_compression;       /* tag 259 of masks */
    enum pb_photometric photometric; /* 0: gray; RGB: of the first three bands; PALETTE: the tags
                                        have the colours */
    int32_t block_px;
    uint32_t n_bands; /* 1 .. PB_BANDS_MAX, chunky */
    bool alpha;       /* the last one is alpha, the others are not multiplied by it */
    enum pb_type type;
    uint16_t compression; /* tag 259 */
    uint16_t predictor;   /* tag 317; left out when 1 */
    const void *tables;   /* tag 347, of every directory of the image; NULL = none */
    size_t tables_bytes;
    const char *software;            /* tag 305 */
    const struct pb_tiff_tags *tags; /* borrowed; NULL = none. GDAL_NODATA goes on overviews, too */
    bool force_big;                  /* BigTIFF although it would fit */
};

struct pb_tiff_layout;

/* Bytes a layout holds; grows with levels and tags, not with blocks. */
uint64_t pb_tiff_layout_bytes(uint32_t n_levels, size_t n_tags);
/* Decides every offset. image is borrowed until free. */
int pb_tiff_layout_create(const struct pb_tiff_image *image, struct pb_err *err,
                          struct pb_tiff_layout **out_layout);
uint64_t pb_tiff_layout_total(const struct pb_tiff_layout *layout); /* bytes of the file */
bool pb_tiff_layout_big(const struct pb_tiff_layout *layout);
/* Writes a block of block_bytes to its offset. Thread: any. */
int pb_tiff_place_block(const struct pb_tiff_layout *layout, uint32_t level, uint64_t block,
                        const void *data, struct pb_file_out *file, struct pb_err *err);
/* spool: NULL = all blocks have been placed. */
int pb_tiff_write(const struct pb_tiff_layout *layout, const struct pb_spool *spool,
                  struct pb_file_out *file, struct pb_err *err);
void pb_tiff_layout_destroy(struct pb_tiff_layout *layout); /* NULL is fine */
#endif
