/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/raw_blocks.h"
#include "pipeline/raster/block_reader.h"

#include <stdlib.h>

enum { CELL_W = 256, CELL_H = 128 };

static uint32_t whole_blocks(int32_t block, int32_t least, int32_t image)
{
    uint32_t n = (uint32_t)block;
    while (n < (uint32_t)least && n < (uint32_t)image)
        n += (uint32_t)block;
    return n;
}

void pb_raw_blocks_stand_in(const struct pb_raster_info *info, uint32_t *out_w, uint32_t *out_h)
{
    *out_w = whole_blocks(info->block_w, CELL_W, info->width);
    *out_h = whole_blocks(info->block_h, CELL_H, info->height);
}

uint64_t pb_raw_blocks_stand_in_bytes(const struct pb_raster_info *info)
{
    uint32_t w, h;
    pb_raw_blocks_stand_in(info, &w, &h);
    return (uint64_t)w * h * pb_type_bytes(info->type);
}

int pb_raw_blocks_open_made(struct pb_raw_blocks *blocks, const struct pb_raster_info *info,
                            const struct pb_raw_how *how, struct pb_err *err)
{
    struct pb_block_layout *l = calloc(1, sizeof *l);
    blocks->how = *how;
    if (l == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the layout of blocks");
    *l = (struct pb_block_layout){.width = info->width,
                                  .height = info->height,
                                  .bands = info->n_bands,
                                  .tiled = true,
                                  .planar = info->n_bands > 1,
                                  .bits = (uint32_t)(8 * pb_type_bytes(info->type)),
                                  .compression = 1,
                                  .predictor = 1,
                                  .group_w = 1,
                                  .group_h = 1};
    pb_raw_blocks_stand_in(info, &l->block_w, &l->block_h);
    l->across = ((uint32_t)info->width + l->block_w - 1) / l->block_w;
    l->down = ((uint32_t)info->height + l->block_h - 1) / l->block_h;
    l->row_bytes = (uint64_t)l->block_w * (l->bits / 8);
    l->block_bytes = l->row_bytes * l->block_h;
    blocks->layout = blocks->stand_in = l;
    blocks->n = blocks->n_image = pb_block_layout_count(l);
    return 0;
}

int pb_raw_blocks_open(struct pb_raw_blocks *blocks, const struct pb_raster *raster,
                       const struct pb_raw_how *how, struct pb_err *err)
{
    const struct pb_block_reader *reader = pb_raster_block_reader(raster);
    blocks->raster = raster;
    blocks->how = *how;
    blocks->alpha_band = pb_raster_info(raster)->alpha_band;
    blocks->fill = pb_raster_block_fill(raster);
    if (how->by_host)
        return pb_raw_blocks_open_made(blocks, pb_raster_info(raster), how, err);
    blocks->layout = pb_block_reader_layout(reader);
    blocks->n = blocks->n_image = pb_block_layout_count(blocks->layout);
    if (how->mask == PB_RAW_MASK_BLOCKS) {
        blocks->mask = pb_block_reader_layout(pb_raster_mask_reader(raster));
        blocks->n += pb_block_layout_count(blocks->mask);
    }
    blocks->place = calloc(blocks->n, sizeof *blocks->place);
    if (blocks->place == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the list of %llu blocks",
                       (unsigned long long)blocks->n);
    int rc = pb_block_reader_places(reader, err, blocks->place);
    if (rc == 0 && blocks->mask != NULL)
        rc = pb_block_reader_places(pb_raster_mask_reader(raster), err,
                                    blocks->place + blocks->n_image);
    return rc;
}

void pb_raw_blocks_free(struct pb_raw_blocks *blocks)
{
    free(blocks->place);
    free(blocks->stand_in);
    blocks->place = NULL;
    blocks->stand_in = NULL;
}
