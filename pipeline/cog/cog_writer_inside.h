/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_WRITER_INSIDE_H
#define PB_COG_WRITER_INSIDE_H
/* The writer that cog_writer.c makes and finishes, and to which cog_add.c adds. Private to the two.
 */
#include "pipeline/cog/block_encoder.h"
#include "pipeline/cog/cog_file.h"
#include "pipeline/cog/cog_writer.h"
#include "pipeline/cog/mask_encoder.h"
#include "pipeline/cog/pyramid.h"

struct pb_cog_writer {
    struct pb_cog_options options;
    struct pb_grid grid;
    struct pb_block_format format;
    uint32_t n_levels;          /* levels of the pyramid, including the image */
    struct pb_pyramid *pyramid; /* NULL without overviews, or when the caller encodes them */
    struct pb_cog_file *file;   /* NULL once finished */
    unsigned char tables[PB_CODEC_TABLES_MAX]; /* common to all blocks of a picture */
    struct pb_block_encoder **encoder; /* indexed by worker; NULL if all blocks are finished */
    struct pb_mask_encoder **mask;     /* the same; NULL without masks */
    uint64_t *moved; /* indexed by worker: valid pixels of the image moved off nodata */
};

static inline int32_t pb_cog_blocks_along(int32_t size, int32_t block_px)
{
    return size / block_px + (size % block_px != 0);
}

/* Sink of the pyramid. user: the writer. */
int pb_cog_writer_overview(void *user, uint32_t level, uint32_t col, uint32_t row, int32_t w,
                           int32_t h, const float *const *half, uint32_t worker,
                           struct pb_err *err);
#endif
