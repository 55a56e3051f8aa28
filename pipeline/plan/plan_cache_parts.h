/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_CACHE_PARTS_H
#define PB_PLAN_CACHE_PARTS_H
/* Arithmetic for the cells of a source, shared by plan_cache.c and plan_cache_mapped.c. */
#include "pipeline/plan/plan_cache.h"

enum {
    PB_CELL_PX = 256, /* approximate side of a cell in a tiled file */
    PB_STRIP_CELL_ROWS = 32,
    PB_STRIP_CELL_BYTES = 4 << 20
};

/* Adds GDAL's cache and the open files of all readers of a source to *out. window: area that a
 * reader reads at a time. */
void pb_plan_cache_add_readers(const struct pb_raster_info *info, struct pb_rect window,
                               struct pb_plan_decoding *out);
/* Bytes of the cells of a source. */
uint64_t pb_plan_cells_bytes(const struct pb_plan *plan, const struct pb_plan_cells *cells,
                             size_t source);

static inline int64_t pb_cache_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t pb_cache_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t pb_cache_parts(int64_t length, int64_t each)
{
    return (length + each - 1) / each;
}

static inline bool pb_cache_is_striped(const struct pb_raster_info *info)
{
    return info->block_w >= info->width;
}

/* Largest multiple of whole blocks up to `wanted` pixels, at least one block. */
static inline int32_t pb_cache_whole_blocks(int32_t block, int32_t wanted)
{
    return block >= wanted ? block : wanted / block * block;
}

/* Rows of a cell in a striped file whose cells have rows of row_px pixels of all bands. */
static inline int32_t pb_cache_strip_rows(const struct pb_plan_source *source,
                                          const struct pb_raster_info *info, int64_t row_px)
{
    int64_t row_bytes = row_px * (int64_t)(pb_type_bytes(source->type) * source->n_bands + 1);
    int64_t rows =
        pb_cache_least(PB_STRIP_CELL_ROWS, pb_cache_most(PB_STRIP_CELL_BYTES / row_bytes, 1));
    return pb_cache_whole_blocks(info->block_h, (int32_t)rows);
}
#endif
