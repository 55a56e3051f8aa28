/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_BLOCKS_H
#define PB_RASTER_BLOCKS_H
/* Decides which pixels of a raster are decoded here and which by GDAL, and verifies blocks that
 * GDAL decodes. Private to raster_gdal*.c. Belongs to one thread at a time. */
#include "pipeline/raster/block_reader.h"

struct pb_raster_blocks {
    struct pb_block_reader *image, *mask; /* NULL: not supported here */
    bool own;                             /* the image's pixels are decoded here */
    bool checked; /* all blocks of the image are verified: for strips that are not held in memory */
    struct pb_block_fill fill; /* filled in by the caller before the first read */
};

/* The descriptor of part and name are borrowed until close. info: GDAL's view of the same file;
 * GDAL reads an image on which the two differ. Sets info->own_blocks, mask_blocks and
 * decoder_bytes. *blocks must be zero before; close it after a failure too. */
int pb_raster_blocks_open(struct pb_raster_blocks *blocks, const struct pb_file_part *part,
                          const char *name, int32_t max_directories, struct pb_raster_info *info,
                          struct pb_err *err);
void pb_raster_blocks_close(struct pb_raster_blocks *blocks);

/* Call before GDAL decodes: verifies the blocks below rect, of the image or of its mask, if
 * their codec is supported here. */
int pb_raster_blocks_check(struct pb_raster_blocks *blocks, bool mask,
                           const struct pb_raster_info *info, const struct pb_rect *rect,
                           struct pb_err *err);
#endif
