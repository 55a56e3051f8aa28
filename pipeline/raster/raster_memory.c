/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Memory of reading, for the plan: the memory of one open raster (our own decoders: one stored
 * and one decoded block, and no cache), and, for blocks that GDAL decodes, the size of GDAL's
 * block cache with which no block is decoded twice. The cache is a strict LRU over all bands: a
 * little too small is as bad as no cache, because windows that advance along a row need the
 * first block again just after its eviction (measured: 17 times slower on strips of one row).
 * Therefore GDAL's own bytes per cached block are counted, too.
 *
 * Fast cases: windows on the block grid of a tiled file, and windows as wide as the image of a
 * striped one, need almost no cache and run in parallel, a raster per thread. Windows narrower
 * than a strip need its complete rows cached, and a second raster on the same rows decodes them
 * again: give each thread its own rows. One band of a pixel-interleaved file costs as much as
 * all. */
#include "pipeline/raster/raster.h"

#define BLOCK_OVERHEAD 256 /* GDAL's bookkeeping of a cached block, rounded up */

uint64_t pb_raster_sample_bytes(const struct pb_raster_info *info)
{
    if (info->complex.kind != PB_COMPLEX_NONE)
        return pb_complex_bytes(info->complex.kind);
    return pb_type_bytes(info->type);
}

static uint64_t plane_bytes(const struct pb_raster_info *info)
{
    return (uint64_t)info->block_w * (uint64_t)info->block_h * pb_raster_sample_bytes(info);
}

/* Count of blocks that `size` pixels from `first` overlap. */
static uint64_t touched(int32_t first, int32_t size, int32_t block)
{
    return size < 1 ? 0 : (uint64_t)(((int64_t)first + size - 1) / block - first / block + 1);
}

uint64_t pb_raster_reader_bytes(const struct pb_raster_info *info)
{
    uint64_t planes = info->pixel_interleaved ? (uint64_t)info->n_bands : 1;
    if (info->is_made || info->is_growing)
        return 0;
    if (info->own_blocks)
        return info->decoder_bytes + (1u << 20);
    return info->decoder_bytes + plane_bytes(info) * planes + info->stored_block_bytes + (1u << 20);
}

uint64_t pb_raster_cache_bytes(const struct pb_raster_info *info, const struct pb_rect *window)
{
    uint64_t across = touched(0, info->width, info->block_w);
    uint64_t down = touched(window->y, window->h, info->block_h);
    bool whole = window->x <= 0 && window->w >= info->width;
    bool aligned = whole || (window->x % info->block_w == 0 && window->w % info->block_w == 0);
    uint64_t blocks = aligned ? 1 : across * down;
    if (info->own_blocks || info->is_made || info->is_growing)
        return 0;
    /* One block more: GDAL splits a decoded block into all its bands at once. */
    return (blocks + 1) * (uint64_t)info->n_bands * (plane_bytes(info) + BLOCK_OVERHEAD);
}
