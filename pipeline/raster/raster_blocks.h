/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_BLOCKS_H
#define PB_RASTER_BLOCKS_H
/* Which pixels of a raster are decoded here and which by GDAL, and the verification of blocks that
 * GDAL decodes. Private to raster_gdal*.c. Belongs to one thread at a time. */
#include "pipeline/raster/block_reader.h"

struct pb_raster_blocks {
    struct pb_block_reader *image, *mask; /* NULL: not understood here */
    bool own;                             /* the image's pixels are decoded here */
    bool checked;                         /* all of the image: of strips that are not held */
    struct pb_block_fill fill;            /* filled in by the caller before the first read */
};

/* The descriptor of part and name are borrowed until close. info: GDAL's view of the same file; an
 * image on which the two differ is left to GDAL. Sets info->own_blocks and info->decoder_bytes.
 * Zero *blocks before; close it after a failure as well. */
int pb_raster_blocks_open(struct pb_raster_blocks *blocks, const struct pb_file_part *part,
                          const char *name, int32_t max_directories, struct pb_raster_info *info,
                          struct pb_err *err);
void pb_raster_blocks_close(struct pb_raster_blocks *blocks);

/* To be called before GDAL decodes: verifies the blocks below rect, of the image or of its mask, as
 * far as their codec is supported here. */
int pb_raster_blocks_check(struct pb_raster_blocks *blocks, bool mask,
                           const struct pb_raster_info *info, const struct pb_rect *rect,
                           struct pb_err *err);
#endif
