/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_CACHE_H
#define PB_PLAN_CACHE_H
/* Decoded pixels that readers share: part of making a plan (see cache.c). Pure. */
#include "pipeline/plan/plan.h"
#include "pipeline/raster/block_cache.h"

/* Returns true if tiles are read straight into their slots, because no two of them share a block.
 */
bool pb_plan_reads_direct(const struct pb_plan *plan, const struct pb_raster_info *info);
/* Decoding for the order, stripes and readers of the plan. growth: 2^growth times the usual rows a
 * cell; for pb_plan_cache_grow(). */
struct pb_plan_decoding pb_plan_cache(const struct pb_plan *plan, uint32_t growth);
/* Returns how often cells can be doubled in height for less decoding; 0: taller cells save nothing.
 */
uint32_t pb_plan_cache_grow(const struct pb_plan *plan);
/* Returns true if the cells that a tile reads are known to be spent after it
 * (pb_cache_reader.rest), and sets the two rectangles of the tile's window that later tiles need.
 */
bool pb_plan_cache_rest(const struct pb_plan *plan, uint32_t number, uint32_t window,
                        struct pb_rect out_rest[2]);
/* Options for the block cache. */
struct pb_block_cache_options pb_plan_cache_options(const struct pb_plan *plan, size_t source,
                                                    enum pb_plan_part part);
/* Like pb_plan_cache(), for all sources of a chain whose products are on a grid of their own:
 * tiles touch blocks at any position, therefore every source has cells. */
struct pb_plan_decoding pb_plan_cache_mapped(const struct pb_plan *plan);
#endif
