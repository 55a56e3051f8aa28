/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/raw_blocks.h"
#include "pipeline/raster/block_reader.h"

#include <stdlib.h>

int pb_raw_blocks_open(struct pb_raw_blocks *blocks, const struct pb_raster *raster,
                       struct pb_err *err)
{
    const struct pb_block_reader *reader = pb_raster_block_reader(raster);
    const struct pb_block_layout *l = pb_block_reader_layout(reader);
    blocks->raster = raster;
    blocks->layout = l;
    blocks->fill = pb_raster_block_fill(raster);
    blocks->n = (uint64_t)l->across * l->down * (l->planar ? (uint64_t)l->bands : 1);
    blocks->place = calloc(blocks->n, sizeof *blocks->place);
    if (blocks->place == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the list of %llu blocks",
                       (unsigned long long)blocks->n);
    return pb_block_reader_places(reader, err, blocks->place);
}

void pb_raw_blocks_free(struct pb_raw_blocks *blocks)
{
    free(blocks->place);
    blocks->place = NULL;
}
