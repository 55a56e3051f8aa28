/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_WRITER_H
#define PB_TIFF_WRITER_H
/* Lays out a cloud-optimised GeoTIFF and writes the parts that are not in the file yet: blocks of
 * placed levels were written before. The order of bytes does not depend on the order of the blocks:
 * header, GDAL's structural metadata, all directories from the full image down, their tables of
 * blocks, then the blocks of the smallest overview first and of the full image last, row by row.
 * The blocks of the full image, and those of a first overview of many blocks, begin at a multiple
 * of PB_TIFF_PAGE_BYTES. With masks, each directory of the image is followed by one of its mask,
 * one bit a pixel, 1 = valid. Little-endian; classic TIFF when it fits 4 GiB, else BigTIFF. One
 * thread. */
#include "config/base/err.h"
#include "pipeline/io/gap_file.h"
#include "pipeline/raster/raster.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block is preceded by its size, and followed by a copy of its last four bytes. */
enum { PB_TIFF_LEADER = 4, PB_TIFF_TRAILER = 4, PB_TIFF_FRAME = PB_TIFF_LEADER + PB_TIFF_TRAILER };

#define PB_TIFF_PAGE_BYTES PB_GAP_ALIGN

struct pb_tiff_block {
    uint64_t bytes; /* 0 = unknown */
    uint64_t at;    /* place of the block for its owner; unused here */
};

struct pb_tiff_level {
    int32_t width, height;
    uint64_t n_blocks;                 /* row-major */
    const struct pb_tiff_block *block; /* borrowed; all known; unused with block_bytes */
};

enum pb_photometric {
    PB_PHOTOMETRIC_GRAY = 1,
    PB_PHOTOMETRIC_RGB = 2,
    PB_PHOTOMETRIC_PALETTE = 3,
    PB_PHOTOMETRIC_YCBCR = 6 /* for JPEG: chroma has half the rows and columns */
};

struct pb_tiff_image {
    const struct pb_tiff_level *level; /* [0] is the full image */
    uint32_t n_levels;
    bool masks;                /* level[1], level[3], ... are the masks of those before */
    uint64_t block_bytes;      /* size of every block; 0 = sizes differ */
    uint64_t mask_block_bytes; /* the same for masks' blocks */
    uint16_t mask_compression; /* tag 259 of masks */
    /* 0: gray; RGB: the first three bands; PALETTE: the tags have the colours. */
    enum pb_photometric photometric;
    int32_t block_px;
    uint32_t n_bands; /* 1 .. PB_BANDS_MAX, chunky */
    bool alpha;       /* the last one is alpha, the others are not multiplied by it */
    enum pb_type type;
    uint16_t compression; /* tag 259 */
    uint16_t predictor;   /* tag 317; left out when 1 */
    const void *tables;   /* tag 347, for every directory of the image; NULL if absent */
    size_t tables_bytes;
    const char *software;            /* tag 305 */
    const struct pb_tiff_tags *tags; /* borrowed; NULL if absent. Overviews get GDAL_NODATA, too */
    bool force_big;                  /* BigTIFF although it would fit */
};

struct pb_tiff_layout;

/* Bytes of a layout; grows with levels and tags, not with blocks. */
uint64_t pb_tiff_layout_bytes(uint32_t n_levels, size_t n_tags);
/* Computes every offset. image is borrowed until free. */
int pb_tiff_layout_create(const struct pb_tiff_image *image, struct pb_err *err,
                          struct pb_tiff_layout **out_layout);
uint64_t pb_tiff_layout_total(const struct pb_tiff_layout *layout); /* bytes of the file */
bool pb_tiff_layout_big(const struct pb_tiff_layout *layout);
/* Offset of the leader of a level's first block. */
uint64_t pb_tiff_layout_data(const struct pb_tiff_layout *layout, uint32_t level);
/* Returns true if a level begins at a multiple of PB_TIFF_PAGE_BYTES. The result is the same for
 * any image of that size, whatever the sizes of blocks. */
bool pb_tiff_begins_page(const struct pb_tiff_image *image, uint32_t level);
/* Writes a block and its frame to the offset of the leader. Thread: any. */
int pb_tiff_place_block(struct pb_gap_file *file, uint64_t at, const void *data, uint64_t bytes,
                        struct pb_err *err);
/* Same, to the block's offset in a level whose blocks have one size. */
int pb_tiff_place_even(const struct pb_tiff_layout *layout, uint32_t level, uint64_t block,
                       const void *data, struct pb_gap_file *file, struct pb_err *err);

/* Sources for writing a file. */
struct pb_tiff_blocks {
    uint64_t placed; /* bit k: the blocks of level k are in the file */
    /* Reads bytes of a block of another level, with its frame. Called in the order of the file. */
    int (*read)(void *user, uint32_t level, uint64_t block, uint64_t from, void *data, size_t bytes,
                struct pb_err *err);
    /* Sets *out_data to the address of byte `from` of a framed block in memory, valid until write()
     * returns, and returns the count of contiguous bytes; *out_data NULL: these must be read. `at`
     * NULL: all must be read. */
    size_t (*at)(void *user, uint32_t level, uint64_t block, uint64_t from, const void **out_data);
    void *user;
    const struct pb_gap *gaps; /* gaps in the file while it is written */
    size_t n_gaps;
};

/* Memory that write() uses while it runs. */
#define PB_TIFF_WRITE_BYTES (UINT64_C(160) << 10)
/* Writes everything except the placed blocks, to a file whose checksum is being computed. */
int pb_tiff_write(const struct pb_tiff_layout *layout, const struct pb_tiff_blocks *source,
                  struct pb_gap_file *file, struct pb_err *err);
void pb_tiff_layout_destroy(struct pb_tiff_layout *layout); /* NULL is fine */
#endif
