/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_LAYOUT_H
#define PB_BLOCK_LAYOUT_H
/* Layout of the pixels of one TIFF image in its blocks (tiles or strips), and the blocks' places
 * in the file. A block's decoded size follows from the directory alone; a decoder must produce
 * exactly this size. Thread: any. */
#include "pipeline/raster/tiff_directory.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PB_SAMPLE_UNSIGNED = 1,
    PB_SAMPLE_SIGNED = 2,
    PB_SAMPLE_FLOAT = 3,
    PB_SAMPLE_COMPLEX_SIGNED = 5,
    PB_SAMPLE_COMPLEX_FLOAT = 6
};

struct pb_block_layout {
    int32_t width, height, bands;
    bool big_endian, tiled, planar;
    uint32_t block_w, block_h; /* pixels; strips are as wide as the image and no higher */
    uint32_t across, down;     /* blocks of one plane; with `planar` each band is a plane */
    uint32_t bits;             /* bits of a sample; for complex samples of both parts */
    uint16_t format;           /* PB_SAMPLE_* of all samples, 0 = mixed or another */
    uint16_t compression, predictor, photometric;
    uint32_t group_w, group_h; /* pixels that share chroma samples; 1 x 1 unless YCbCr */
    uint64_t row_bytes;        /* bytes of a row of a decoded block (of group_h rows for YCbCr) */
    uint64_t block_bytes;      /* bytes of a complete decoded block */
    uint64_t stored_max;       /* bytes of the largest stored block, up to the limit that is read */
    struct pb_tiff_field offsets, counts;
};

struct pb_block_place {
    uint64_t offset, bytes; /* bytes == 0: the block is not stored */
};

/* Finds the directory of the first image, or of its full-size mask, which is before the next page;
 * 0 = not found. */
int pb_block_layout_find(const struct pb_file_part *part, const char *name, bool mask,
                         int32_t max_directories, struct pb_err *err, uint64_t *out_directory);

/* Fills *out from a directory. Returns -ENOTSUP without an error if it is not fully supported:
 * other bit orders, volumes, samples of several sizes, missing lists. Errors of reading fill
 * file->err. */
int pb_block_layout_read(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                         struct pb_block_layout *out);

/* pb_block_layout_is_plain: true for whole samples of 1, 2, 4 or 8 bytes that are the pixels'
 * values (GDAL converts CMYK, YCbCr and L*a*b* to RGB), with a matching predictor; or for pairs
 * of such samples (complex) without a predictor. */
bool pb_block_layout_is_complex(const struct pb_block_layout *layout);
bool pb_block_layout_is_plain(const struct pb_block_layout *layout);
/* Returns the predictor of a plain layout's blocks, and true if their samples have the other byte
 * order than the host. */
int pb_block_layout_predictor(const struct pb_block_layout *layout);
bool pb_block_layout_swaps(const struct pb_block_layout *layout);
/* Returns true for one band of bits or bytes that are the pixels of a mask. */
bool pb_block_layout_is_mask(const struct pb_block_layout *layout);
/* Count of blocks of all planes. */
uint64_t pb_block_layout_count(const struct pb_block_layout *layout);

/* Bytes of the decoded rows of block row `row`; block_bytes except for the last strip. */
uint64_t pb_block_layout_need(const struct pb_block_layout *layout, uint32_t row);

/* index: row-major within a plane, planes one after the other. */
int pb_block_layout_place(const struct pb_block_layout *layout, const struct pb_tiff_file *file,
                          uint64_t index, struct pb_block_place *out);
#endif
